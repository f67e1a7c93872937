"""Homes as Docker volumes."""

from collections.abc import Sequence
from http import HTTPStatus

from aiodocker import Docker, DockerError
from aiodocker.containers import DockerContainer
from aiodocker.volumes import DockerVolume

from codehub.adapters.docker.containers import remove_container
from codehub.adapters.docker.engine import ignore_statuses, translate_change_errors, translate_read_errors
from codehub.adapters.docker.jobs.container import remove_leftover_job
from codehub.adapters.docker.options import DockerOptions
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient, within_reach
from codehub.domain.naming import volume_name
from codehub.domain.states import ErrorReason


class DockerVolumes:
    """Only labeled volumes count: Docker creates a bare one for a container whose volume is missing."""

    def __init__(self, engine: Docker, options: DockerOptions) -> None:
        self._engine = engine
        self._options = options

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        with translate_read_errors():
            present = await volume_exists(self._engine, self._options, workspace_id)
        return VolumeFact.PRESENT if present else VolumeFact.ABSENT

    async def list_all(self) -> Sequence[WorkspaceId]:
        with translate_read_errors():
            response = await self._engine.volumes.list(filters=self._options.filters)
        volumes = response["Volumes"] or []
        found = {each["Name"]: self._options.workspace_of(each["Labels"]) for each in volumes}
        return [
            workspace_id
            for name, workspace_id in found.items()
            if workspace_id and name == volume_name(workspace_id)
        ]

    async def provision(self, workspace_id: WorkspaceId) -> None:
        with translate_change_errors():
            await create_volume(self._engine, self._options, workspace_id)

    async def remove(self, workspace_id: WorkspaceId) -> None:
        with translate_change_errors():
            # The container of an ended job still uses the volume.
            await remove_leftover_job(self._engine, workspace_id)
            try:
                await DockerVolume(self._engine, volume_name(workspace_id)).delete()
            except DockerError as error:
                if error.status == HTTPStatus.CONFLICT:
                    raise Transient(
                        ErrorReason.ACTION_FAILED, "The volume cannot be removed now: a container uses it."
                    ) from error
                if error.status != HTTPStatus.NOT_FOUND:
                    raise

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        """Refuse: all homes are on one engine, and while it is down nobody knows what it holds."""
        if await self.observe(workspace_id) is VolumeFact.PRESENT:
            raise within_reach()

    async def measure(self, workspace_id: WorkspaceId, seconds: float) -> None:
        """Return None: the engine can only measure all volumes at once."""


async def volume_exists(engine: Docker, options: DockerOptions, workspace_id: WorkspaceId) -> bool:
    try:
        volume = await DockerVolume(engine, volume_name(workspace_id)).show()
    except DockerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return False
        raise
    return options.workspace_of(volume["Labels"]) == workspace_id


async def require_volume(engine: Docker, options: DockerOptions, workspace_id: WorkspaceId) -> None:
    """Raise Transient(ACTION_FAILED) if the volume does not exist."""
    if not await volume_exists(engine, options, workspace_id):
        raise Transient(ErrorReason.ACTION_FAILED, "The volume of this workspace does not exist.")


async def require_mounted_volume(
    engine: Docker, options: DockerOptions, workspace_id: WorkspaceId, container: DockerContainer
) -> None:
    """Raise Transient(ACTION_FAILED) if the volume disappeared before its container was created.

    Docker has then created an empty volume for the container, so remove both.
    """
    try:
        await require_volume(engine, options, workspace_id)
    except Transient:
        await remove_container(container)
        await _remove_unlabeled_volume(engine, workspace_id)
        raise


async def _remove_unlabeled_volume(engine: Docker, workspace_id: WorkspaceId) -> None:
    """Remove a volume that Docker created for a container by itself; it holds no data."""
    with ignore_statuses(HTTPStatus.NOT_FOUND):
        await DockerVolume(engine, volume_name(workspace_id)).delete()


async def create_volume(engine: Docker, options: DockerOptions, workspace_id: WorkspaceId) -> None:
    """Create the volume, or keep an existing one. Raise Transient if CodeHub did not create that one."""
    name = volume_name(workspace_id)
    wanted = {"Name": name, "Labels": options.labels(workspace_id)}
    await engine.volumes.create(wanted)
    if await volume_exists(engine, options, workspace_id):
        return
    # An engine that goes down while it creates a volume leaves an empty one without labels.
    if await _is_empty(engine, name):
        await _remove_unlabeled_volume(engine, workspace_id)
        await engine.volumes.create(wanted)
    if not await volume_exists(engine, options, workspace_id):
        raise Transient(
            ErrorReason.ACTION_FAILED,
            f"CodeHub did not create the volume {name}; check what it holds, then remove it.",
        )


async def _is_empty(engine: Docker, name: str) -> bool:
    """Return whether no container uses the volume and its files are empty."""
    usage = await engine._query_json("system/df")  # noqa: SLF001 (aiodocker has no public method for it)
    found = [each["UsageData"] for each in usage["Volumes"] or [] if each["Name"] == name]
    return any(each["RefCount"] == 0 and each["Size"] == 0 for each in found)
