"""Containers of workspaces: their configuration, what the engine reports about them, and their removal."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

from aiodocker import DockerError
from aiodocker.containers import DockerContainer

from codehub.adapters.docker.engine import ANSWER_SECONDS, tolerating
from codehub.adapters.docker.images import Image, ImageTraits, traits_of
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


# Those whose processes are there, also while they are not scheduled.
RUNNING_STATES = {"running", "paused"}


@dataclass(frozen=True)
class Seen:
    """A container; `host_port` is where its IDE is published, if it runs."""

    container_id: str
    running: bool
    traits: ImageTraits
    configuration: str
    image_ref: str | None
    host_port: int | None

    @property
    def is_left_alone(self) -> bool:
        """A start touches none of ours that runs; one without our label was made by somebody else."""
        return self.running and self.configuration != ""

    @classmethod
    def inspected(cls, answer: Mapping[str, Any]) -> Self:
        labels = answer["Config"]["Labels"] or {}
        traits = traits_of(labels)
        published = (answer["NetworkSettings"]["Ports"] or {}).get(f"{traits.port}/tcp") or []
        return cls(
            container_id=answer["Id"],
            running=answer["State"]["Running"],
            traits=traits,
            configuration=labels.get(CONFIGURATION_LABEL, ""),
            image_ref=labels.get(IMAGE_REF_LABEL),
            host_port=next((int(each["HostPort"]) for each in published), None),
        )

    @classmethod
    def listed(cls, answer: Mapping[str, Any]) -> Self:
        labels = answer["Labels"] or {}
        traits = traits_of(labels)
        return cls(
            container_id=answer["Id"],
            running=answer["State"] in RUNNING_STATES,
            traits=traits,
            configuration=labels.get(CONFIGURATION_LABEL, ""),
            image_ref=labels.get(IMAGE_REF_LABEL),
            host_port=next(
                (
                    each["PublicPort"]
                    for each in answer["Ports"]
                    if each.get("PrivatePort") == traits.port and "PublicPort" in each
                ),
                None,
            ),
        )


POLL_SECONDS = 0.05


async def stop_container(container: DockerContainer, grace_seconds: int, answer_seconds: float) -> None:
    """Ask it to end, kill it after the grace; succeed if it does not run, is going or is not there."""
    # The client would wait forever for an engine that hangs.
    async with asyncio.timeout(grace_seconds + answer_seconds):
        with tolerating(HTTPStatus.NOT_MODIFIED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            await container.stop(t=grace_seconds)


async def remove_container(container: DockerContainer) -> None:
    """Return once it is gone; succeed if there is none. It is killed if it runs."""
    async with asyncio.timeout(ANSWER_SECONDS):
        try:
            await container.delete(force=True)
        except DockerError as error:
            # Removed already, or by somebody else right now.
            if error.status == HTTPStatus.CONFLICT:
                await _until_gone(container)
            elif error.status != HTTPStatus.NOT_FOUND:
                raise


async def _until_gone(container: DockerContainer) -> None:
    while True:
        try:
            await container.show()
        except DockerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return
            raise
        await asyncio.sleep(POLL_SECONDS)
