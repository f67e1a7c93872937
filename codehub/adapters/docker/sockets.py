"""The UNIX sockets of IDE and agent in a container, which only CodeHub can reach.

Published ports, and the container's address on Docker's network, are open to every user of the host.
"""

import contextlib
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason

logger = logging.getLogger(__name__)

# Inside the container.
SOCKETS = "/run/codehub/sockets"
IDE_SOCKET = "ide.sock"
PORTS_SOCKET = "ports.sock"
# Only CodeHub can enter the parent directory.
PRIVATE = 0o700
# The container's user is not ours. Only the container sees this directory.
SHARED = 0o777


@dataclass(frozen=True)
class SocketDirectory:
    """The directory with the sockets of all containers; the engine must see it at the same path."""

    path: Path

    def directory_of(self, workspace_id: WorkspaceId) -> Path:
        return self.path / workspace_id

    def ide_socket_of(self, workspace_id: WorkspaceId) -> str:
        return str(self.directory_of(workspace_id) / IDE_SOCKET)

    def ports_socket_of(self, workspace_id: WorkspaceId) -> str:
        return str(self.directory_of(workspace_id) / PORTS_SOCKET)

    def prepare(self, workspace_id: WorkspaceId) -> None:
        """Create the directory that the container mounts."""
        self.path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        self.path.chmod(PRIVATE)
        self.directory_of(workspace_id).mkdir(exist_ok=True)
        self.directory_of(workspace_id).chmod(SHARED)

    def remove(self, workspace_id: WorkspaceId) -> None:
        """Remove the sockets of a container that stops."""
        directory = self.directory_of(workspace_id)
        with contextlib.suppress(FileNotFoundError):
            # Rename first, so that the next container gets an empty directory at once.
            gone = directory.rename(self.path / f".removed-{uuid4()}")
            shutil.rmtree(gone, ignore_errors=True)
            if gone.exists():
                logger.warning("%s cannot be removed; remove it as root", gone)


def require_socket_arguments(reference: str, arguments: str) -> None:
    """Raise Permanent for an image whose IDE cannot listen on a socket."""
    if not arguments:
        raise Permanent(
            ErrorReason.ACTION_FAILED,
            f"The image {reference} cannot be used: its IDE needs a port, which other users of the host "
            "could connect to. Choose CodeHub's image of this release or one that is built on it.",
        )


def with_sockets(
    configuration: dict[str, Any], workspace_id: WorkspaceId, arguments: str, sockets: SocketDirectory
) -> dict[str, Any]:
    """Return the configuration of a container whose IDE listens on a socket, through these arguments."""
    return {
        **configuration,
        "Cmd": arguments.split(),
        # The image's health check would use the port.
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": with_mount(configuration["HostConfig"], sockets.directory_of(workspace_id), SOCKETS),
    }


def with_mount(host: dict[str, Any], source: Path, target: str, *, read_only: bool = False) -> dict[str, Any]:
    """Return the host configuration with one more bind mount."""
    mount = {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": read_only}
    return {**host, "Mounts": [*host["Mounts"], mount]}
