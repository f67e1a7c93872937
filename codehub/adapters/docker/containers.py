"""What a workspace's container is made of: pure, so that two that are alike say the same of themselves."""

import hashlib
import json
from typing import Any

from codehub.adapters.docker.images import Image
from codehub.adapters.docker.options import CONFIGURATION_LABEL, DockerOptions, Limits
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import volume_name

Configuration = dict[str, Any]

HOME = "/home/coder"
# Whatever the image says: nobody is root in a workspace.
USER = "1000:1000"
LOOPBACK = "127.0.0.1"
NANO = 1_000_000_000
# Docker's own default is noexec, but compilers and package managers run what they put there.
TEMPORARY = "rw,exec,nosuid,nodev,mode=1777"
LOG = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}}


def instance_configuration(
    workspace_id: WorkspaceId, image_ref: str, image: Image, network_id: str, options: DockerOptions
) -> Configuration:
    port = f"{image.traits.port}/tcp"
    configuration: Configuration = {
        "Image": image_ref,
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
            **confined(options.limits),
        },
    }
    labels = options.labels(workspace_id)
    # Names may have come to mean something else, and a container stays with what they meant when it was made.
    meant = {"Image": image.image_id, "Network": network_id, "Labels": labels}
    fingerprint = _fingerprint({**configuration, **meant})
    return {**configuration, "Labels": {**labels, CONFIGURATION_LABEL: fingerprint}}


def home_mount(workspace_id: WorkspaceId, target: str, *, read_only: bool = False) -> Configuration:
    return {"Type": "volume", "Source": volume_name(workspace_id), "Target": target, "ReadOnly": read_only}


def confined(limits: Limits) -> Configuration:
    """The least that a container needs, and the most that it may use."""
    return {
        "Init": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Memory": limits.memory_bytes,
        # The same as the memory: no swap on top of it.
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(limits.cpus * NANO),
        "PidsLimit": limits.pids,
        "LogConfig": LOG,
    }


def _fingerprint(configuration: Configuration) -> str:
    return hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()
