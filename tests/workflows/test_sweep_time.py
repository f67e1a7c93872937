"""The time of a sweep comes from outside. A wrong or forged one stops, archives and removes nothing early."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from temporalio.testing import ActivityEnvironment

from activities.garbage import GarbageActivities
from activities.idle import IdleActivities
from codehub.contracts import GcResult, SweepRequest
from codehub.db.models import Archive
from codehub.domain.garbage import GracePeriods
from codehub.domain.limits import IdleTimes
from codehub.domain.naming import archive_key
from codehub.domain.states import DesiredState
from testkit.fakes import FakeArchives, FakeObject
from tests.workflows.harness import LIMITS, ControlPlane

NOW = datetime.now(UTC)
YEARS_AHEAD = NOW + timedelta(days=4000)
YEARS_AGO = NOW - timedelta(days=4000)
GRACES = GracePeriods()
OTHER_OP = "44444444-4444-4444-8444-444444444444"
TIMES = IdleTimes(timedelta(minutes=10), timedelta(minutes=30))


async def collect(plane: ControlPlane, now: datetime, clock: datetime) -> GcResult:
    garbage = GarbageActivities(
        plane.database, FakeArchives(plane.world), plane.convergence, GRACES, clock=lambda: clock
    )
    return await ActivityEnvironment().run(garbage.collect, SweepRequest(now))


@pytest.fixture
async def orphan(plane: ControlPlane) -> str:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    key = archive_key(workspace_id, OTHER_OP)
    plane.world.objects[key] = FakeObject(b"a tar without its meta")
    return key


async def orphan_since(plane: ControlPlane, key: str) -> datetime | None:
    async with plane.database.transaction() as session:
        return await session.scalar(select(Archive.orphan_since).where(Archive.key == key))


async def test_a_time_years_ahead_collects_nothing(plane: ControlPlane, orphan: str) -> None:
    await collect(plane, NOW, NOW)
    plane.world.uploads["unfinished"] = NOW
    result = await collect(plane, YEARS_AHEAD, NOW + timedelta(minutes=1))
    assert (result.collected, result.aborted_uploads) == (0, 0)
    assert orphan in plane.archive_keys()


async def test_a_clock_years_ahead_collects_nothing_either(plane: ControlPlane, orphan: str) -> None:
    await collect(plane, NOW, NOW)
    assert (await collect(plane, NOW, YEARS_AHEAD)).collected == 0
    assert orphan in plane.archive_keys()


@pytest.mark.parametrize(("now", "clock"), [(YEARS_AGO, NOW), (NOW, YEARS_AGO)])
async def test_a_time_years_ago_does_not_shorten_the_grace(
    plane: ControlPlane, orphan: str, now: datetime, clock: datetime
) -> None:
    await collect(plane, now, clock)
    later = NOW + GRACES.orphan - timedelta(minutes=1)
    assert (await collect(plane, later, later)).collected == 0
    assert orphan in plane.archive_keys()


async def test_an_orphan_first_seen_in_the_future_is_removed_after_the_grace_all_the_same(
    plane: ControlPlane, orphan: str
) -> None:
    await collect(plane, YEARS_AHEAD, NOW)
    assert await orphan_since(plane, orphan) == YEARS_AHEAD
    await collect(plane, NOW, NOW)
    assert await orphan_since(plane, orphan) == NOW
    assert (await collect(plane, NOW + GRACES.orphan, NOW + GRACES.orphan)).collected == 1


@pytest.mark.parametrize("desired", [DesiredState.RUNNING, DesiredState.STANDBY])
async def test_a_time_years_ahead_makes_nothing_idle(plane: ControlPlane, desired: DesiredState) -> None:
    workspace_id = await plane.reach(desired)
    await sweep_idle(plane, YEARS_AHEAD)
    assert (await plane.snapshot(workspace_id)).desired_state is desired


async def sweep_idle(plane: ControlPlane, now: datetime) -> None:
    idle = IdleActivities(plane.database, plane.buffer, plane.convergence, TIMES, TIMES, LIMITS, 1)
    for sweep in (idle.store_last_access, idle.stop_unused, idle.archive_unused):
        await ActivityEnvironment().run(sweep, SweepRequest(now))
