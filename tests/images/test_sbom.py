"""The list of what an image consists of is complete, and in the format of CycloneDX."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def write(directory: Path, *images: str) -> dict[str, Any]:
    command = (sys.executable, str(ROOT / "images/sbom.py"), "1.2.3", str(directory), *images)
    subprocess.run(command, check=True)
    return {path.name: json.loads(path.read_text()) for path in directory.iterdir()}


def locked(lock: str) -> set[str]:
    """Return the package URLs of the versions that a lock names."""
    lines = (ROOT / "requirements" / lock).read_text().splitlines()
    pinned = [line.split(" ")[0] for line in lines if "==" in line and not line.startswith((" ", "#"))]
    return {f"pkg:pypi/{name.replace('==', '@')}" for name in pinned}


def test_the_installation_consists_of_what_is_locked(tmp_path: Path) -> None:
    found = write(tmp_path)["codehub.cdx.json"]
    assert (found["bomFormat"], found["metadata"]["component"]["version"]) == ("CycloneDX", "1.2.3")
    assert {each["purl"] for each in found["components"]} == locked("runtime.lock")


def test_an_image_consists_of_locked_and_debian_packages(storage_job_image: str, tmp_path: Path) -> None:
    found = write(tmp_path, storage_job_image.partition(":")[0])["codehub-storage-job.cdx.json"]
    purls = {each["purl"] for each in found["components"]}
    assert len(purls) == len(found["components"])
    assert any(each.startswith("pkg:deb/debian/libc6@") for each in purls)
    assert any(each.startswith("pkg:pypi/obstore@") for each in purls)
