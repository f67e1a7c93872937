"""A worker that was paused during an observation judges no newer row by it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from activities.observer import Observer
from activities.workspace import StaleObservation, WorkspaceActivities
from codehub.contracts import AttemptEnded, AttemptFailed, ClaimRequest, OperationRequest, SettleRequest
from codehub.db.events import list_events
from codehub.db.session import Database
from codehub.db.snapshots import load_snapshot
from codehub.domain.conditions import Observation, Snapshot, WorkspaceId
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from testkit.fakes import IMAGE, FakeArchives, FakeInstance, FakeInstances, FakeVolumes, FakeWorld
from testkit.rows import add_user, add_workspace

NEW_OP = "33333333-3333-4333-8333-333333333333"


class PausableObserver(Observer):
    """Runs a callback between the observation and its storage."""

    meanwhile: list[Callable[[], Awaitable[None]]]

    async def observe(self, workspace_id: WorkspaceId, archive_key: str | None) -> Observation:
        facts = await super().observe(workspace_id, archive_key)
        if self.meanwhile:
            await self.meanwhile.pop(0)()
        return facts


class Workers:
    """Two workers on one row: one that can be paused while it observes, and one that continues."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.world = FakeWorld()
        ports = FakeInstances(self.world), FakeVolumes(self.world), FakeArchives(self.world)
        observer = PausableObserver(*ports)
        object.__setattr__(observer, "meanwhile", [])
        self.meanwhile = observer.meanwhile
        self.paused = WorkspaceActivities(database, observer)
        self.other = WorkspaceActivities(database, Observer(*ports))
        self.call = ActivityEnvironment().run

    async def create(self, desired: DesiredState) -> WorkspaceId:
        async with self.database.transaction() as session:
            owner = await add_user(session)
            return await add_workspace(session, owner, desired_state=desired, image_ref=IMAGE)

    async def claim(self, workspace_id: WorkspaceId, operation: Operation) -> OperationRequest:
        claimed = await self.call(self.other.claim, ClaimRequest(workspace_id, operation, NEW_OP))
        assert claimed is not None
        return claimed

    async def provision(self, workspace_id: WorkspaceId) -> OperationRequest:
        """The other worker provisions: PENDING becomes STANDBY."""
        await self.call(self.other.observe, workspace_id)
        claimed = await self.claim(workspace_id, Operation.PROVISIONING)
        self.world.volumes[workspace_id] = {"notes": b"precious"}
        await self.call(self.other.settle, SettleRequest(workspace_id, 0, claimed.claimed_at))
        return claimed

    async def start(self, workspace_id: WorkspaceId) -> OperationRequest:
        """The other worker claims STARTING."""
        await self.call(self.other.observe, workspace_id)
        return await self.claim(workspace_id, Operation.STARTING)

    async def snapshot(self, workspace_id: WorkspaceId) -> Snapshot:
        async with self.database.transaction() as session:
            snapshot = await load_snapshot(session, workspace_id)
        assert snapshot is not None
        return snapshot

    async def count_events(self, workspace_id: WorkspaceId) -> int:
        async with self.database.transaction() as session:
            return len(await list_events(session, workspace_id, before=None, limit=100))


@pytest.fixture
def workers(database: Database) -> Workers:
    return Workers(database)


async def test_an_observation_from_before_the_home_was_made_does_not_call_it_lost(workers: Workers) -> None:
    workspace_id = await workers.create(DesiredState.STANDBY)

    async def meanwhile() -> None:
        await workers.provision(workspace_id)

    workers.meanwhile.append(meanwhile)
    await workers.call(workers.paused.observe, workspace_id)
    row = await workers.snapshot(workspace_id)
    assert (row.phase, row.error_reason) == (Phase.STANDBY, None)


async def test_a_late_settle_does_not_judge_the_operation_that_followed(workers: Workers) -> None:
    workspace_id = await workers.create(DesiredState.RUNNING)
    earlier = await workers.provision(workspace_id)
    await workers.start(workspace_id)
    late = await workers.call(workers.paused.settle, SettleRequest(workspace_id, 0, earlier.claimed_at))
    await expect_untouched(workers, workspace_id, late)


async def test_a_late_failure_does_not_count_against_the_operation_that_followed(workers: Workers) -> None:
    workspace_id = await workers.create(DesiredState.RUNNING)
    earlier = await workers.provision(workspace_id)
    await workers.start(workspace_id)
    failed = AttemptFailed(workspace_id, ErrorReason.TIMEOUT, "Too late.", 0, earlier.claimed_at)
    await expect_untouched(workers, workspace_id, await workers.call(workers.paused.record_failure, failed))


async def expect_untouched(workers: Workers, workspace_id: WorkspaceId, late: AttemptEnded | None) -> None:
    assert late is not None
    assert late.retry_after_seconds is None
    row = await workers.snapshot(workspace_id)
    assert (row.operation, row.error_reason, row.error_count) == (Operation.STARTING, None, 0)


async def test_a_settle_that_was_paused_observes_again(workers: Workers) -> None:
    workspace_id = await workers.create(DesiredState.RUNNING)
    await workers.provision(workspace_id)
    claimed = await workers.start(workspace_id)

    async def meanwhile() -> None:
        workers.world.instances[workspace_id] = FakeInstance(IMAGE)
        await workers.call(workers.other.observe, workspace_id)

    workers.meanwhile.append(meanwhile)
    ended = await workers.call(workers.paused.settle, SettleRequest(workspace_id, 0, claimed.claimed_at))
    assert ended is not None
    assert (ended.snapshot.phase, ended.snapshot.error_count) == (Phase.RUNNING, 0)


async def test_a_row_that_changes_during_every_observation_is_left_to_the_next_try(workers: Workers) -> None:
    workspace_id = await workers.create(DesiredState.RUNNING)
    await workers.provision(workspace_id)

    async def change_row() -> None:
        if workspace_id not in workers.world.instances:
            workers.world.instances[workspace_id] = FakeInstance(IMAGE)
        else:
            del workers.world.instances[workspace_id]
        await workers.call(workers.other.observe, workspace_id)

    workers.meanwhile.extend([change_row] * 5)
    before = await workers.snapshot(workspace_id)
    with pytest.raises(StaleObservation):
        await workers.call(workers.paused.observe, workspace_id)
    after = await workers.snapshot(workspace_id)
    assert replace(after, conditions=before.conditions, phase=before.phase) == before


async def test_a_paused_settle_of_a_finished_operation_settles_nothing(workers: Workers) -> None:
    workspace_id = await workers.create(DesiredState.STANDBY)
    await workers.call(workers.other.observe, workspace_id)
    claimed = await workers.claim(workspace_id, Operation.PROVISIONING)
    workers.world.volumes[workspace_id] = {"notes": b"precious"}
    settle = SettleRequest(workspace_id, 0, claimed.claimed_at)
    settled: list[tuple[Snapshot, int]] = []

    async def meanwhile() -> None:
        await ActivityEnvironment().run(workers.other.settle, settle)
        settled.append((await workers.snapshot(workspace_id), await workers.count_events(workspace_id)))

    workers.meanwhile.append(meanwhile)
    ended = await workers.call(workers.paused.settle, settle)
    assert ended is not None
    assert ended.snapshot.phase is Phase.STANDBY
    assert [(await workers.snapshot(workspace_id), await workers.count_events(workspace_id))] == settled
