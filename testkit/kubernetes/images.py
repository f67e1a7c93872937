"""Load images into the nodes of the test cluster."""

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testkit.kubernetes import binaries
from testkit.kubernetes.machine import Machine, run

PAUSE = "codehub.test/pause:1"
CTR = ("ctr", "--namespace", "k8s.io")


def load(nodes: Iterable[Machine], archive: Path) -> None:
    """Load the images of a tar file, from `docker save` or in OCI layout, into nodes at once."""

    def load_into(node: Machine) -> None:
        with archive.open("rb") as file:
            node.run(*CTR, "images", "import", "-", stdin=file.fileno())

    with ThreadPoolExecutor() as threads:
        list(threads.map(load_into, nodes))


def load_from_docker(nodes: Iterable[Machine], images: Sequence[str]) -> None:
    """Copy images of the Docker engine; together they share their layers."""
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory) / "images.tar"
        run("docker", "save", "--output", archive, *images)
        load(nodes, archive)


def write_pause(archive: Path) -> None:
    """Write the image of the first process of all Pods, in the format of `docker save`."""
    layer = _tar({"pause": binaries.built("pause").read_bytes()})
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]
    members = {
        "config.json": json.dumps(configuration).encode(),
        "layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    archive.write_bytes(_tar(members))


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
