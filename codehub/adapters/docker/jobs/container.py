"""The container of a storage job: its configuration, and removal of a leftover one."""

import ipaddress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from aiodocker import Docker, DockerError

from codehub.adapters.docker.containers import Configuration, confined, home_mount, remove_container
from codehub.adapters.docker.options import DockerOptions
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import job_name
from codehub.ports import ArchiveStore

DATA = "/data"
# What each kind of job needs of a home whose files belong to anybody; nobody makes device nodes.
READ = ("DAC_READ_SEARCH",)
WRITE = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP")
CAPABILITIES = {"archive": READ, "restore": WRITE, "create-empty": ()}
# A third of what any other container has: nobody waits for an archive.
ARCHIVE_CPU_SHARES = 341
TEMPORARY = "rw,noexec,nosuid,nodev,mode=1777"


def job_configuration(
    operation: str, workspace_id: WorkspaceId, store: ArchiveStore, options: DockerOptions
) -> Configuration:
    """It is told the rest on stdin, so that nobody finds credentials in what Docker keeps of it."""
    mounts = [home_mount(workspace_id, DATA, read_only=operation == "archive")]
    return {
        "Image": options.job_image,
        "Cmd": [operation, "--attended"],
        "User": "0:0",
        "Labels": options.labels(workspace_id),
        "OpenStdin": True,
        # The engine closes its stdin when we go away, which ends it.
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": {
            "NetworkMode": network_of(store, options),
            # An empty archive is made without a home.
            "Mounts": [] if operation == "create-empty" else mounts,
            "ReadonlyRootfs": True,
            "Tmpfs": {"/tmp": TEMPORARY},  # noqa: S108 (its own, not this machine's)
            **confined(options.job_limits),
            **({"CpuShares": ARCHIVE_CPU_SHARES} if operation == "archive" else {}),
            "CapAdd": [*CAPABILITIES[operation]],
        },
    }


def network_of(store: ArchiveStore, options: DockerOptions) -> str:
    """A store on this machine's loopback interface is out of reach for any network but the host's."""
    if options.job_network:
        return options.job_network
    return "host" if _is_loopback(urlsplit(store.endpoint_url or "").hostname) else "bridge"


def _is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


# Between making and starting it a living caller needs no more than that.
LEFT_BEHIND = timedelta(seconds=30)
SECONDS_OF_A_TIME = len("2026-01-31T23:59:59")


async def clear_leftover(engine: Docker, workspace_id: WorkspaceId) -> bool:
    """True if there is no job any more: none was there, or one that nobody waits for."""
    container = engine.containers.container(job_name(workspace_id))
    try:
        found = await container.show()
    except DockerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return True
        raise
    if _is_at_work(found, datetime.now(UTC)):
        return False
    await remove_container(container)
    return True


def _is_at_work(found: dict[str, Any], now: datetime) -> bool:
    state = found["State"]["Status"]
    made_at = datetime.fromisoformat(found["Created"][:SECONDS_OF_A_TIME]).replace(tzinfo=UTC)
    return state == "running" or (state == "created" and now - made_at < LEFT_BEHIND)
