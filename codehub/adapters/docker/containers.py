"""What a workspace's container is made of: pure, so that two that are alike say the same of themselves."""

import hashlib
import json
from typing import Any

from codehub.adapters.docker.images import Image
from codehub.adapters.docker.options import CONFIGURATION_LABEL, IMAGE_REF_LABEL, DockerOptions, Limits
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import volume_name
from codehub.ports import InstanceRequest

Configuration = dict[str, Any]

HOME = "/home/coder"
# Whatever the image says: nobody is root in a workspace.
USER = "1000:1000"
LOOPBACK = "127.0.0.1"
NANO = 1_000_000_000
# Docker's own default is noexec, but compilers and package managers run what they put there.
TEMPORARY = "rw,exec,nosuid,nodev,mode=1777"
# The least that a container needs.
CONFINEMENT = {
    "Init": True,
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges"],
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}},
}


def instance_configuration(
    request: InstanceRequest, image: Image, network_id: str, options: DockerOptions
) -> Configuration:
    workspace_id, port = request.workspace_id, f"{image.traits.port}/tcp"
    configuration: Configuration = {
        "Image": options.resolve_image(request.image_ref),
        "Hostname": "workspace",
        "User": USER,
        "Env": [f"CODEHUB_WORKSPACE_ID={workspace_id}", f"CODEHUB_BASE_PATH=/w/{workspace_id}/"],
        "ExposedPorts": {port: {}},
        "HostConfig": {
            "NetworkMode": options.network,
            # Any free port, and never on an interface that others can reach.
            "PortBindings": {port: [{"HostIp": LOOPBACK, "HostPort": ""}]},
            "Mounts": [home_mount(workspace_id, HOME)],
            "ReadonlyRootfs": image.traits.read_only_root,
            "Tmpfs": {"/tmp": TEMPORARY},  # noqa: S108 (its own, not this machine's)
            # The sweep starts it again, after it has seen why it ended.
            "RestartPolicy": {"Name": "no"},
            **CONFINEMENT,
        },
    }
    labels = {**options.labels(workspace_id), IMAGE_REF_LABEL: request.image_ref}
    made_from = {
        # Names may have come to mean something else: a container stays with what they meant when it was made.
        "image": image.image_id,
        "network": network_id,
        "memory": options.limits.memory_bytes,
        "CPUs": options.limits.cpus,
        "processes": options.limits.pids,
        "other settings": _digest({**configuration, "Image": None, "Labels": labels}),
    }
    labels[CONFIGURATION_LABEL] = json.dumps(made_from, sort_keys=True)
    host = {**configuration["HostConfig"], **limited(options.limits)}
    return {**configuration, "HostConfig": host, "Labels": labels}


def differences(made_from: str, wanted: Configuration) -> tuple[str, ...]:
    """What is different about a container with this label; nothing if it says nothing that we understand."""
    try:
        before = json.loads(made_from)
    except ValueError:
        return ()
    now = json.loads(wanted["Labels"][CONFIGURATION_LABEL])
    return tuple(sorted(name for name in now if now[name] != before.get(name)))


def home_mount(workspace_id: WorkspaceId, target: str, *, read_only: bool = False) -> Configuration:
    return {"Type": "volume", "Source": volume_name(workspace_id), "Target": target, "ReadOnly": read_only}


def confined(limits: Limits) -> Configuration:
    """The least that a container needs, and the most that it may use."""
    return {**CONFINEMENT, **limited(limits)}


def limited(limits: Limits) -> Configuration:
    return {
        "Memory": limits.memory_bytes,
        # The same as the memory: no swap on top of it.
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(limits.cpus * NANO),
        "PidsLimit": limits.pids,
    }


def _digest(configuration: Configuration) -> str:
    return hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()
