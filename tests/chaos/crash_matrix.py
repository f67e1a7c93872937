"""Kills the worker before and after every activity of an operation, on any backend."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from testkit.crash_points import CrashPoint, crashing_worker
from testkit.deployment import Deployment
from testkit.trees import Description, describe_tree, make_rich_home
from testkit.waiting import until

ROW_STEPS = ("observe", "claim", "settle")
# The mutation check uses only the point where a break shows, because all of them take minutes.
ONLY_AT = "TESTKIT_ONLY_CRASH_AT"
OpenDeployment = Callable[[Path], AbstractAsyncContextManager[Deployment]]


@dataclass(frozen=True)
class OperationPath:
    """How to reach an operation, and its steps besides those that all operations have."""

    begin: DesiredState | None
    end: DesiredState
    steps: tuple[str, ...]


COURSES = {
    Operation.PROVISIONING: OperationPath(None, DesiredState.STANDBY, ("provision_volume",)),
    Operation.CREATE_EMPTY_ARCHIVE: OperationPath(
        None, DesiredState.ARCHIVED, ("upload_empty_archive", "commit_archive")
    ),
    Operation.STARTING: OperationPath(DesiredState.STANDBY, DesiredState.RUNNING, ("start_instance",)),
    Operation.STOPPING: OperationPath(DesiredState.RUNNING, DesiredState.STANDBY, ("stop_instance",)),
    Operation.ARCHIVING: OperationPath(
        DesiredState.STANDBY,
        DesiredState.ARCHIVED,
        ("upload_archive", "commit_archive", "remove_archived_volume"),
    ),
    Operation.RESTORING: OperationPath(
        DesiredState.ARCHIVED, DesiredState.STANDBY, ("restore_archive", "mark_restored")
    ),
    Operation.DELETING: OperationPath(
        DesiredState.RUNNING, DesiredState.DELETED, ("stop_instance", "remove_volume")
    ),
}


async def crash_at_every_point(
    operation: Operation, open_deployment: OpenDeployment, place: Path, at_once: int
) -> None:
    """Start a deployment for each crash point."""
    path = COURSES[operation]
    steps = [f"{moment}:{step}" for step in (*ROW_STEPS, *path.steps) for moment in ("before", "after")]
    points = [point for point in steps if point == os.environ.get(ONLY_AT, point)]
    assert points, f"{operation} has no such point"
    room = asyncio.Semaphore(at_once)

    async def crash(point: str) -> None:
        directory = place / point.replace(":", "-")
        directory.mkdir()
        async with room, open_deployment(directory) as deployment:
            await crash_and_recover(deployment, path, CrashPoint.parse(point, directory / "crashed"))

    results = await asyncio.gather(*(crash(point) for point in points), return_exceptions=True)
    failed = {
        point: result
        for point, result in zip(points, results, strict=True)
        if isinstance(result, BaseException)
    }
    assert not failed, "\n".join(f"{point}: {error!r}" for point, error in failed.items())


async def crash_and_recover(deployment: Deployment, path: OperationPath, point: CrashPoint) -> None:
    workspace_id, before = await prepare(deployment, path)
    with crashing_worker(point, deployment.environment) as worker:

        async def ended() -> bool:
            return worker.exitcode is not None

        await deployment.wake(workspace_id)
        await until(ended, "the worker reached its crash point")
        assert worker.exitcode == -signal.SIGKILL
    assert point.crashed_file.exists()
    await check_what_counts_as_complete(deployment, workspace_id, path, before)
    async with deployment.worker():
        await deployment.wake(workspace_id)
        await deployment.wait_for_phase(workspace_id, Phase(path.end.value))
        await check(deployment, workspace_id, path, before)


async def prepare(deployment: Deployment, path: OperationPath) -> tuple[WorkspaceId, Description]:
    """Bring the workspace to the start of the operation with a complete home, and request the end state."""
    if path.begin is None:
        return await deployment.create(path.end), {}
    workspace_id = await deployment.create(DesiredState.STANDBY)
    async with deployment.worker():
        await deployment.wake(workspace_id)
        await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
        make_rich_home(deployment.home(workspace_id))
        before = describe_tree(deployment.home(workspace_id))
        if path.begin is not DesiredState.STANDBY:
            await deployment.move_to(workspace_id, path.begin)
    if path.end is DesiredState.DELETED:
        await deployment.delete(workspace_id, purge=True)
    else:
        await deployment.want(workspace_id, path.end)
    return workspace_id, before


async def check_what_counts_as_complete(
    deployment: Deployment, workspace_id: WorkspaceId, path: OperationPath, before: Description
) -> None:
    """Assert right after the crash that the row alone leads to the home, as for a person's recover.

    The next worker continues, so a later check would not notice.
    """
    snapshot = await deployment.look(workspace_id)
    complete = snapshot.archive_key is None or snapshot.restore_marker == snapshot.archive_key
    if before and complete and path.end is not DesiredState.DELETED:
        assert deployment.home(workspace_id).exists(), "the row says that there is a home, and there is none"
        assert describe_tree(deployment.home(workspace_id)) == before, "the row calls half a home complete"


async def check(
    deployment: Deployment, workspace_id: WorkspaceId, path: OperationPath, before: Description
) -> None:
    snapshot = await deployment.look(workspace_id)
    assert (snapshot.error_reason, snapshot.error_count) == (None, 0)
    if path.end is DesiredState.DELETED:
        assert not deployment.home(workspace_id).exists()
        return
    if path.end is DesiredState.ARCHIVED:
        assert not deployment.home(workspace_id).exists()
        await deployment.move_to(workspace_id, DesiredState.STANDBY)
    if before:
        assert describe_tree(deployment.home(workspace_id)) == before
    await deployment.move_to(workspace_id, DesiredState.ARCHIVED)
