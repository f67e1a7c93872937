"""Containers of jobs whose caller died: they hold the job's name, and the volume."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from aiodocker import Docker, DockerError

from codehub.adapters.docker.container_removal import remove_container
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import job_name

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
