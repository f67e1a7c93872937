"""The container of a storage job: its configuration, and removal of a leftover one."""

import ipaddress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from aiodocker import Docker, DockerError

from codehub.adapters.docker.containers import Configuration, confinement, home_mount, remove_container
from codehub.adapters.docker.options import DockerOptions
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import job_name
from codehub.ports import ArchiveStore

DATA = "/data"
# The capabilities that each kind of job needs, since files of a home can belong to any user.
READ = ("DAC_READ_SEARCH",)
WRITE = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP")
CAPABILITIES = {"archive": READ, "restore": WRITE, "create-empty": ()}
# A third of the default of 1024: an archive can wait for the work of people.
ARCHIVE_CPU_SHARES = 341
TEMPORARY = "rw,noexec,nosuid,nodev,mode=1777"


def job_configuration(
    operation: str, workspace_id: WorkspaceId, store: ArchiveStore, options: DockerOptions
) -> Configuration:
    """Return the configuration. Docker stores it, so credentials are sent over stdin instead."""
    mounts = [home_mount(workspace_id, DATA, read_only=operation == "archive")]
    return {
        "Image": options.job_image,
        "Cmd": [operation, "--attended"],
        "User": "0:0",
        "Labels": options.labels(workspace_id),
        "OpenStdin": True,
        # The engine closes stdin when this process disconnects, and that ends the job.
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": {
            "NetworkMode": job_network(store, options),
            # An empty archive needs no home.
            "Mounts": [] if operation == "create-empty" else mounts,
            "ReadonlyRootfs": True,
            "Tmpfs": {"/tmp": TEMPORARY},  # noqa: S108 (inside the container)
            **confinement(options.job_limits),
            **({"CpuShares": ARCHIVE_CPU_SHARES} if operation == "archive" else {}),
            "CapAdd": [*CAPABILITIES[operation]],
        },
    }


def job_network(store: ArchiveStore, options: DockerOptions) -> str:
    """Return the network of a job. Only the host's network reaches a store on the loopback interface."""
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


# A live caller starts a job's container within this time after creating it.
ABANDONED_AFTER = timedelta(seconds=30)
# Without fractions of a second, which have nine digits.
TIMESTAMP_LENGTH = len("2026-01-31T23:59:59")


async def remove_leftover_job(engine: Docker, workspace_id: WorkspaceId) -> bool:
    """Remove the container of a job whose caller died. Return False if the job is still active."""
    container = engine.containers.container(job_name(workspace_id))
    try:
        found = await container.show()
    except DockerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return True
        raise
    if _is_active(found, datetime.now(UTC)):
        return False
    await remove_container(container)
    return True


def _is_active(found: dict[str, Any], now: datetime) -> bool:
    state = found["State"]["Status"]
    created_at = datetime.fromisoformat(found["Created"][:TIMESTAMP_LENGTH]).replace(tzinfo=UTC)
    return state == "running" or (state == "created" and now - created_at < ABANDONED_AFTER)
