"""A recovery that dies between any two steps is finished by the next run, and only by it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from temporalio.testing import ActivityEnvironment

from activities.observer import Observer
from activities.recovery import PendingRequest, carry_out, remove_stray_container
from activities.workspace import WorkspaceActivities
from codehub.contracts import with_plan
from codehub.db.recoveries import RecoverRequest, load_recover_request
from codehub.db.session import Database
from codehub.db.snapshots import load_snapshot
from codehub.domain.conditions import Observation, Snapshot, WorkspaceId
from codehub.domain.judge import judge
from codehub.domain.limits import RunningLimits
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import ErrorReason, Phase
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from testkit.fakes import IMAGE, FakeArchives, FakeInstance, FakeInstances, FakeVolumes, FakeWorld
from testkit.rows import add_user, add_workspace

LIMITS = RunningLimits()


class Died(Exception):
    """The worker dies."""


@dataclass
class Harness:
    """A workspace in error that is wanted in STANDBY: its volume is gone, its container still exists."""

    database: Database
    world: FakeWorld = field(default_factory=FakeWorld)
    workspace_id: WorkspaceId = field(init=False)

    @property
    def instances(self) -> FakeInstances:
        return FakeInstances(self.world)

    @property
    def observer(self) -> Observer:
        return Observer(self.instances, FakeVolumes(self.world), FakeArchives(self.world))

    async def prepare(self) -> None:
        async with self.database.transaction() as session:
            owner = await add_user(session)
            self.workspace_id = await add_workspace(session, owner, desired_state="STANDBY")
        self.world.volumes[self.workspace_id] = {"notes": b"precious"}
        self.world.instances[self.workspace_id] = FakeInstance(IMAGE)
        await self.observe()
        del self.world.volumes[self.workspace_id]
        assert (await self.observe()).error_reason is ErrorReason.DATA_LOST

    async def observe(self) -> Snapshot:
        activities = WorkspaceActivities(self.database, self.observer)
        snapshot = await ActivityEnvironment().run(activities.observe, self.workspace_id)
        assert snapshot is not None
        return snapshot

    async def ask(self, choice: RecoverChoice) -> RecoverRequest:
        await request_recovery(
            self.database,
            self.workspace_id,
            choice,
            context=RequestContext("test", LIMITS, datetime.now(UTC)),
        )
        asked = await self.pending()
        assert asked is not None
        return asked

    async def pending(self) -> RecoverRequest | None:
        async with self.database.transaction() as session:
            return await load_recover_request(session, self.workspace_id)

    async def snapshot(self) -> Snapshot:
        async with self.database.transaction() as session:
            snapshot = await load_snapshot(session, self.workspace_id)
        assert snapshot is not None
        return snapshot

    async def remove_container(self, asked: RecoverRequest) -> None:
        await remove_stray_container(self.database, self.instances, self.workspace_id, asked)

    async def carry_out(self, facts: Observation, asked: RecoverRequest, *, die: bool = False) -> bool:
        """Run the last step, which stores the outcome. Return whether it differs from the judged snapshot."""
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_snapshot(session, self.workspace_id, for_update=True)
            assert row is not None
            judged = judge(row, facts, now)
            outcome = await carry_out(session, judged, facts, PendingRequest(asked), now)
            if die:
                raise Died
        return outcome != judged


@pytest.fixture
async def harness(database: Database) -> Harness:
    harness = Harness(database)
    await harness.prepare()
    return harness


async def expect_recovered(harness: Harness) -> None:
    recovered = await harness.observe()
    assert (recovered.phase, recovered.error_reason) == (Phase.PENDING, None)
    assert recovered == with_plan(await harness.snapshot())
    assert harness.workspace_id not in harness.world.instances
    assert await harness.pending() is None


async def test_a_run_that_died_before_it_began(harness: Harness) -> None:
    await harness.ask(RecoverChoice.START_EMPTY)
    await expect_recovered(harness)


async def test_a_run_that_died_after_the_container_was_removed(harness: Harness) -> None:
    asked = await harness.ask(RecoverChoice.START_EMPTY)
    await harness.remove_container(asked)
    assert harness.workspace_id not in harness.world.instances
    assert (await harness.snapshot()).phase is Phase.ERROR
    await expect_recovered(harness)


async def test_a_run_that_died_before_its_outcome_was_stored(harness: Harness) -> None:
    asked = await harness.ask(RecoverChoice.START_EMPTY)
    await harness.remove_container(asked)
    facts = await harness.observer.observe(harness.workspace_id, None)
    before = await harness.snapshot()
    with pytest.raises(Died):
        await harness.carry_out(facts, asked, die=True)
    assert await harness.snapshot() == before
    assert await harness.pending() == asked
    await expect_recovered(harness)


async def test_a_run_that_died_after_its_outcome_was_stored(harness: Harness) -> None:
    await harness.ask(RecoverChoice.START_EMPTY)
    await expect_recovered(harness)
    # The outcome was not reported, so the step runs again: an observation, and no second recovery.
    again = await harness.observe()
    assert (again.phase, again.error_reason) == (Phase.PENDING, None)
    assert harness.world.calls.count(("instances.stop", harness.workspace_id)) == 1


async def test_a_run_that_outlived_its_recovery_does_not_stop_the_recovered_workspace(
    harness: Harness,
) -> None:
    asked = await harness.ask(RecoverChoice.START_EMPTY)
    await expect_recovered(harness)
    harness.world.instances[harness.workspace_id] = FakeInstance(IMAGE)
    await harness.remove_container(asked)
    assert harness.workspace_id in harness.world.instances


async def test_a_decision_that_was_changed_meanwhile_is_not_carried_out(harness: Harness) -> None:
    """A container that was already removed is not lost data."""
    earlier = await harness.ask(RecoverChoice.START_EMPTY)
    await harness.remove_container(earlier)
    facts = await harness.observer.observe(harness.workspace_id, None)
    later = await harness.ask(RecoverChoice.RETRY)
    assert not await harness.carry_out(facts, earlier)
    assert await harness.pending() == later
    harness.world.volumes[harness.workspace_id] = {"notes": b"precious"}
    assert (await harness.observe()).phase is Phase.STANDBY
    assert await harness.pending() is None


async def test_a_container_that_is_back_keeps_the_request_open(harness: Harness) -> None:
    asked = await harness.ask(RecoverChoice.START_EMPTY)
    facts = await harness.observer.observe(harness.workspace_id, None)
    assert not await harness.carry_out(facts, asked)
    assert await harness.pending() == asked
