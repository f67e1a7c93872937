"""Homes as Docker volumes."""

from collections.abc import Sequence
from http import HTTPStatus

from aiodocker import Docker, DockerError
from aiodocker.volumes import DockerVolume

from codehub.adapters.docker.engine import acting, asking, tolerating
from codehub.adapters.docker.jobs.container import clear_leftover
from codehub.adapters.docker.options import DockerOptions
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import volume_name
from codehub.domain.states import ErrorReason


class DockerVolumes:
    """A volume counts only with our labels: Docker makes a bare one for any container that names one."""

    def __init__(self, engine: Docker, options: DockerOptions) -> None:
        self._engine = engine
        self._options = options

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        with asking():
            present = await is_volume(self._engine, self._options, workspace_id)
        return VolumeFact.PRESENT if present else VolumeFact.ABSENT

    async def list_all(self) -> Sequence[WorkspaceId]:
        with asking():
            answer = await self._engine.volumes.list(filters=self._options.filters)
        owners = {each["Name"]: self._options.owner_of(each["Labels"]) for each in answer["Volumes"] or []}
        return [owner for name, owner in owners.items() if owner and name == volume_name(owner)]

    async def provision(self, workspace_id: WorkspaceId) -> None:
        with acting():
            await make_volume(self._engine, self._options, workspace_id)

    async def remove(self, workspace_id: WorkspaceId) -> None:
        with acting():
            # A job that has ended uses the volume until its container is gone.
            await clear_leftover(self._engine, workspace_id)
            try:
                await DockerVolume(self._engine, volume_name(workspace_id)).delete()
            except DockerError as error:
                if error.status == HTTPStatus.CONFLICT:
                    raise Transient(
                        ErrorReason.ACTION_FAILED, "The volume cannot be removed now: a container uses it."
                    ) from error
                if error.status != HTTPStatus.NOT_FOUND:
                    raise


async def is_volume(engine: Docker, options: DockerOptions, workspace_id: WorkspaceId) -> bool:
    try:
        volume = await DockerVolume(engine, volume_name(workspace_id)).show()
    except DockerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return False
        raise
    return options.owner_of(volume["Labels"]) == workspace_id


async def remove_bare_volume(engine: Docker, workspace_id: WorkspaceId) -> None:
    """Remove what Docker made for a container whose home had just vanished; nobody has used it."""
    with tolerating(HTTPStatus.NOT_FOUND):
        await DockerVolume(engine, volume_name(workspace_id)).delete()


async def make_volume(engine: Docker, options: DockerOptions, workspace_id: WorkspaceId) -> None:
    """Docker leaves one that exists alone; one that is not ours must not be taken for a home."""
    name = volume_name(workspace_id)
    wanted = {"Name": name, "Labels": options.labels(workspace_id)}
    await engine.volumes.create(wanted)
    if await is_volume(engine, options, workspace_id):
        return
    # An engine that goes down while it makes a volume leaves it without labels, and with nothing in it.
    if await _holds_nothing(engine, name):
        await remove_bare_volume(engine, workspace_id)
        await engine.volumes.create(wanted)
    if not await is_volume(engine, options, workspace_id):
        raise Transient(
            ErrorReason.ACTION_FAILED,
            f"There is a volume {name} that CodeHub did not make; look what it holds, then remove it.",
        )


async def _holds_nothing(engine: Docker, name: str) -> bool:
    """Whether no container uses it and no file in it has any content."""
    usage = await engine._query_json("system/df")  # noqa: SLF001 (aiodocker has no other way to ask for it)
    found = [each["UsageData"] for each in usage["Volumes"] or [] if each["Name"] == name]
    return any(each["RefCount"] == 0 and each["Size"] == 0 for each in found)
