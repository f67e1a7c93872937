"""Containers of workspaces: their configuration, what the engine reports about them, and their removal."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

from aiodocker import DockerError
from aiodocker.containers import DockerContainer

from codehub.adapters.docker.agent import AGENT_VARIABLE, agent_options, reserved_ports
from codehub.adapters.docker.engine import RESPONSE_SECONDS, ignore_statuses
from codehub.adapters.docker.gateway import behind_gateway
from codehub.adapters.docker.images import Image
from codehub.adapters.docker.options import (
    CONFIGURATION_LABEL,
    IMAGE_REF_LABEL,
    SECRET_LABEL,
    DockerOptions,
    Limits,
)
from codehub.adapters.docker.sockets import with_sockets
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import volume_name
from codehub.health import Headers
from codehub.image_traits import ImageTraits, traits_from_labels
from codehub.ports import InstanceRequest

Configuration = dict[str, Any]

HOME = "/home/coder"
# Regardless of the image: no process in a workspace runs as root.
USER = "1000:1000"
LOOPBACK = "127.0.0.1"
NANO = 1_000_000_000
# Docker's default is noexec, but compilers and package managers execute files in /tmp.
TEMPORARY = "rw,exec,nosuid,nodev,mode=1777"
CONFINEMENT = {
    "Init": True,
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges"],
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}},
}
# The states of a container whose processes exist.
RUNNING_STATES = {"running", "paused"}
POLL_SECONDS = 0.05
SECRET_BYTES = 32


def instance_configuration(
    request: InstanceRequest, image: Image, network_id: str, options: DockerOptions
) -> Configuration:
    workspace_id, traits = request.workspace_id, image.traits
    configuration: Configuration = {
        "Image": options.resolve_image(request.image_ref),
        "Hostname": "workspace",
        "User": USER,
        "Env": [
            f"CODEHUB_WORKSPACE_ID={workspace_id}",
            f"CODEHUB_BASE_PATH={options.base_path_of(workspace_id)}",
            *(f"{name}={value}" for name, value in options.environment.items()),
        ],
        "HostConfig": {
            "NetworkMode": options.network,
            "Mounts": [home_mount(workspace_id, HOME)],
            "ReadonlyRootfs": traits.read_only_root,
            "Tmpfs": {"/tmp": TEMPORARY},  # noqa: S108 (inside the container)
            # CodeHub restarts an exited container itself, after it has seen why it exited.
            "RestartPolicy": {"Name": "no"},
            **CONFINEMENT,
        },
    }
    if options.publish_ports:
        configuration = _with_published_ports(configuration, traits)
    else:
        configuration = with_sockets(configuration, workspace_id, traits.socket_arguments, options.sockets)
    if options.egress:
        configuration = behind_gateway(configuration, options.egress)
    labels = {**options.labels(workspace_id), IMAGE_REF_LABEL: request.image_ref}
    made_from = {
        # Ids, not names: a name can refer to another image or network later.
        "image": image.image_id,
        "network": network_id,
        "memory": options.limits.memory_bytes,
        "CPUs": options.limits.cpus,
        "processes": options.limits.pids,
        "other settings": _digest({**configuration, "Image": None, "Labels": labels}),
    }
    labels[CONFIGURATION_LABEL] = json.dumps(made_from, sort_keys=True)
    host = {**configuration["HostConfig"], **resource_limits(options.limits)}
    return {**configuration, "HostConfig": host, "Labels": labels}


def _with_published_ports(configuration: Configuration, traits: ImageTraits) -> Configuration:
    published = [f"{port}/tcp" for port in (traits.port, traits.agent_port) if port is not None]
    # Any free ports, but only on loopback, which other machines cannot reach.
    bindings = {each: [{"HostIp": LOOPBACK, "HostPort": ""}] for each in published}
    return {
        **configuration,
        "ExposedPorts": {each: {} for each in published},
        "HostConfig": {**configuration["HostConfig"], "PortBindings": bindings},
    }


def with_secrets(
    configuration: Configuration, workspace_id: WorkspaceId, traits: ImageTraits, options: DockerOptions
) -> Configuration:
    """Add a secret and the agent's options, which must not make a container look outdated.

    Other users of this machine reach published ports, but they do not know the secret.
    """
    secret = secrets.token_hex(SECRET_BYTES)
    variables = [f"{traits.secret_variable}={secret}"] if traits.secret_variable else []
    if agent := agent_options(workspace_id, traits, options, secret):
        variables.append(f"{AGENT_VARIABLE}={json.dumps(agent)}")
    if not variables:
        return configuration
    return {
        **configuration,
        "Env": [*configuration["Env"], *variables],
        "Labels": {**configuration["Labels"], SECRET_LABEL: secret},
    }


def differences(made_from: str, wanted: Configuration) -> tuple[str, ...]:
    """Return what differs between a container with this label and the wanted one.

    A label that is not JSON counts as no difference.
    """
    try:
        before = json.loads(made_from)
    except ValueError:
        return ()
    now = json.loads(wanted["Labels"][CONFIGURATION_LABEL])
    return tuple(sorted(name for name in now if now[name] != before.get(name)))


def home_mount(workspace_id: WorkspaceId, target: str, *, read_only: bool = False) -> Configuration:
    return {"Type": "volume", "Source": volume_name(workspace_id), "Target": target, "ReadOnly": read_only}


def confinement(limits: Limits) -> Configuration:
    """Return the minimal privileges and the resource limits of a container."""
    return {**CONFINEMENT, **resource_limits(limits)}


def resource_limits(limits: Limits) -> Configuration:
    return {
        "Memory": limits.memory_bytes,
        # The limit on memory and swap together. It equals `Memory`, so the container cannot swap.
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(limits.cpus * NANO),
        "PidsLimit": limits.pids,
    }


def _digest(configuration: Configuration) -> str:
    return hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class ContainerInfo:
    """A container as the engine reports it.

    While it runs, its IDE expects these headers, and its agent the secret. Both listen on UNIX sockets,
    unless their ports are published.
    """

    container_id: str
    running: bool
    traits: ImageTraits
    configuration: str
    image_ref: str | None
    host_port: int | None
    agent_host_port: int | None
    headers: Headers = field(repr=False)
    secret: str = field(repr=False)

    @property
    def is_reusable(self) -> bool:
        """Whether a start leaves this container alone: it runs, and CodeHub made it."""
        return self.running and self.configuration != ""

    @property
    def reserved_ports(self) -> frozenset[int]:
        return reserved_ports(self.traits, published=self.host_port is not None)

    @classmethod
    def from_inspect(cls, response: Mapping[str, Any]) -> Self:
        labels = response["Config"]["Labels"] or {}
        traits = traits_from_labels(labels)
        bindings = response["NetworkSettings"]["Ports"] or {}
        published = {
            int(inside.partition("/")[0]): int(each["HostPort"])
            for inside, found in bindings.items()
            for each in found or ()
        }
        return cls(
            container_id=response["Id"],
            running=response["State"]["Running"],
            traits=traits,
            configuration=labels.get(CONFIGURATION_LABEL, ""),
            image_ref=labels.get(IMAGE_REF_LABEL),
            host_port=published.get(traits.port),
            agent_host_port=published.get(traits.agent_port or 0),
            headers=traits.headers(labels.get(SECRET_LABEL, "")),
            secret=labels.get(SECRET_LABEL, ""),
        )

    @classmethod
    def from_listing(cls, entry: Mapping[str, Any]) -> Self:
        labels = entry["Labels"] or {}
        traits = traits_from_labels(labels)
        published = {
            each.get("PrivatePort"): each["PublicPort"] for each in entry["Ports"] if "PublicPort" in each
        }
        return cls(
            container_id=entry["Id"],
            running=entry["State"] in RUNNING_STATES,
            traits=traits,
            configuration=labels.get(CONFIGURATION_LABEL, ""),
            image_ref=labels.get(IMAGE_REF_LABEL),
            host_port=published.get(traits.port),
            agent_host_port=published.get(traits.agent_port or 0),
            headers=traits.headers(labels.get(SECRET_LABEL, "")),
            secret=labels.get(SECRET_LABEL, ""),
        )


async def stop_container(container: DockerContainer, grace_seconds: int, response_seconds: float) -> None:
    """Stop the container, and kill it after the grace. Succeed if it does not run or does not exist."""
    # The client would wait forever for an engine that hangs.
    async with asyncio.timeout(grace_seconds + response_seconds):
        with ignore_statuses(HTTPStatus.NOT_MODIFIED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            await container.stop(t=grace_seconds)


async def remove_container(container: DockerContainer) -> None:
    """Kill and remove the container, and return when it is gone. Succeed if it does not exist."""
    async with asyncio.timeout(RESPONSE_SECONDS):
        try:
            await container.delete(force=True)
        except DockerError as error:
            # CONFLICT: another request is removing it.
            if error.status == HTTPStatus.CONFLICT:
                await _wait_until_gone(container)
            elif error.status != HTTPStatus.NOT_FOUND:
                raise


async def _wait_until_gone(container: DockerContainer) -> None:
    while True:
        try:
            await container.show()
        except DockerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return
            raise
        await asyncio.sleep(POLL_SECONDS)
