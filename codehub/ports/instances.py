"""IDE instances, and events about them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.ports.progress import Report

# What a restart would change (image, memory, …), in words for people, by workspace.
Outdated = Mapping[WorkspaceId, tuple[str, ...]]


class ImageMissing(Exception):
    """The image has to be pulled first."""


class PortUnavailable(Exception):
    """This port, or all ports of this instance, cannot be opened; the message tells people why."""


@dataclass(frozen=True)
class InstanceRequest:
    """The IDE to start for a workspace, on its volume."""

    workspace_id: WorkspaceId
    image_ref: str


@dataclass(frozen=True)
class Upstream:
    """The address of an instance, its IDE, and how the proxy must change requests for it.

    `host` is a name or an address, or the path of a UNIX socket; then there is no port. Every connection
    starts with the preamble.
    """

    host: str
    port: int
    keep_prefix: bool
    headers: tuple[tuple[str, str], ...] = ()
    ide: str = ""
    preamble: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class ListeningPort:
    """A TCP port that a program in an instance listens on, and the program's name if it is known."""

    port: int
    process: str | None


class Instances(Protocol):
    """IDE instances: process groups, containers or Pods."""

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        """Return whether the instance exists, runs and responds.

        READY if it accepts traffic, UNHEALTHY if it runs but fails its health check, NOT_READY if it exists
        but does not run, ABSENT if there is none. One failed check makes it UNHEALTHY; the caller decides how
        long that may last.
        """

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        """Return all instances in one call; the others are absent."""

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        """Return the running instances that a restart would change, and how; of one workspace, or of all.

        An instance is left out if this is unknown, or if its image would have to be pulled first.
        """

    async def start(self, request: InstanceRequest, report: Report) -> None:
        """Start the instance and return once it accepts traffic; replace one that has exited.

        A running instance is left alone, even if its image or limits are outdated. One that does not respond
        is waited for like a new one.

        Raise ImageMissing if the image has to be pulled, Permanent(IMAGE_PULL_FAILED) if it cannot be pulled,
        Transient(ACTION_FAILED) if the volume does not exist or the IDE does not become ready in time; in the
        latter case the instance is removed, so that the next start creates a new one.
        """

    async def pull(self, image_ref: str, report: Report) -> None:
        """Pull the image; return at once if it exists locally.

        Raise Permanent(IMAGE_PULL_FAILED) if that is impossible. There is no time limit: the caller ends a
        pull that makes no progress.
        """

    async def stop(self, workspace_id: WorkspaceId) -> None:
        """Ask the instance to exit, then kill and remove it; succeed if there is none."""

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        """Return the address of the instance, or None if it does not run."""

    async def find_port(self, workspace_id: WorkspaceId, port: int) -> Upstream | None:
        """Return how to reach a port inside the instance, or None if the instance does not run.

        This does not check whether a program listens there. Raise PortUnavailable for CodeHub's own ports and
        for an instance without an agent.
        """

    async def list_ports(self, workspace_id: WorkspaceId) -> Sequence[ListeningPort]:
        """Return the ports that its programs listen on, in order; none if it does not run.

        Raise PortUnavailable for an instance without an agent.
        """

    def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        """Yield the last lines of its output, then new output if `follow`; nothing if there is none."""


class Changes(Protocol):
    """Events of the provider, which arrive before the next sweep."""

    def follow(self) -> AsyncIterator[WorkspaceId]:
        """Yield workspaces whose container exited or whose container or volume was removed; never end.

        It survives outages. Events may be missed, and may come although nothing is wrong.
        """
