"""Kill -9 the worker before and after every activity of every operation: it converges, no byte is lost."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from tests.chaos.conftest import Servers
from tests.chaos.site import Site, open_site, until_killed
from tests.trees import Description, describe_tree, make_rich_home
from worker.crash_points import CRASH_AT, CRASHED_FILE

ROW_STEPS = ("observe", "claim", "settle")
AT_ONCE = 6


@dataclass(frozen=True)
class Course:
    """How an operation comes about, and what it does beside the steps that all have."""

    begin: DesiredState | None
    end: DesiredState
    steps: tuple[str, ...]


COURSES = {
    Operation.PROVISIONING: Course(None, DesiredState.STANDBY, ("provision_volume",)),
    Operation.CREATE_EMPTY_ARCHIVE: Course(
        None, DesiredState.ARCHIVED, ("upload_empty_archive", "commit_archive")
    ),
    Operation.STARTING: Course(DesiredState.STANDBY, DesiredState.RUNNING, ("start_instance",)),
    Operation.STOPPING: Course(DesiredState.RUNNING, DesiredState.STANDBY, ("stop_instance",)),
    Operation.ARCHIVING: Course(
        DesiredState.STANDBY,
        DesiredState.ARCHIVED,
        ("upload_archive", "commit_archive", "remove_archived_volume"),
    ),
    Operation.RESTORING: Course(
        DesiredState.ARCHIVED, DesiredState.STANDBY, ("restore_archive", "mark_restored")
    ),
    Operation.DELETING: Course(
        DesiredState.RUNNING, DesiredState.DELETED, ("stop_instance", "remove_volume")
    ),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("operation", COURSES)
async def test_a_killed_worker_costs_nothing_during(
    operation: Operation, servers: Servers, tmp_path: Path
) -> None:
    course = COURSES[operation]
    points = [f"{moment}:{step}" for step in (*ROW_STEPS, *course.steps) for moment in ("before", "after")]
    room = asyncio.Semaphore(AT_ONCE)

    async def crash(point: str) -> None:
        directory = tmp_path / point.replace(":", "-")
        directory.mkdir()
        async with room, open_site(servers.stack.environment, servers.template, directory) as site:
            await crash_and_recover(site, course, point, directory / "crashed")

    results = await asyncio.gather(*(crash(point) for point in points), return_exceptions=True)
    failed = {
        point: result
        for point, result in zip(points, results, strict=True)
        if isinstance(result, BaseException)
    }
    assert not failed, "\n".join(f"{point}: {error!r}" for point, error in failed.items())


async def crash_and_recover(site: Site, course: Course, point: str, crashed: Path) -> None:
    workspace_id, before = await prepare(site, course)
    with site.worker_process(**{CRASH_AT: point, CRASHED_FILE: str(crashed)}) as doomed:
        await site.wake(workspace_id)
        await until_killed(doomed)
    assert crashed.exists()
    async with site.worker():
        await site.wake(workspace_id)
        await site.arrive(workspace_id, Phase(course.end.value))
        await check(site, workspace_id, course, before)


async def prepare(site: Site, course: Course) -> tuple[WorkspaceId, Description]:
    """Bring it to where the operation begins, with a home that has everything, and ask for where it ends."""
    if course.begin is None:
        return await site.create(course.end), {}
    workspace_id = await site.create(DesiredState.STANDBY)
    async with site.worker():
        await site.wake(workspace_id)
        await site.arrive(workspace_id, Phase.STANDBY)
        make_rich_home(site.home(workspace_id))
        before = describe_tree(site.home(workspace_id))
        if course.begin is not DesiredState.STANDBY:
            await site.go(workspace_id, course.begin)
    if course.end is DesiredState.DELETED:
        await site.delete(workspace_id, purge=True)
    else:
        await site.want(workspace_id, course.end)
    return workspace_id, before


async def check(site: Site, workspace_id: WorkspaceId, course: Course, before: Description) -> None:
    snapshot = await site.look(workspace_id)
    assert (snapshot.error_reason, snapshot.error_count) == (None, 0)
    if course.end is DesiredState.DELETED:
        assert not site.home(workspace_id).exists()
        return
    if course.end is DesiredState.ARCHIVED:
        assert not site.home(workspace_id).exists()
        await site.go(workspace_id, DesiredState.STANDBY)
    if before:
        assert describe_tree(site.home(workspace_id)) == before
    await site.go(workspace_id, DesiredState.ARCHIVED)
