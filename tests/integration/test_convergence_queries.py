"""The queries for unfinished and running workspaces agree with the domain."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import EventKind, record_event
from codehub.db.models import WorkspaceEvent
from codehub.db.recoveries import RecoverRequest, set_recover_request
from codehub.db.running_slots import count_running, list_running
from codehub.db.session import Database
from codehub.db.snapshots import load_snapshot
from codehub.db.sweeps import count_unfinished, not_converged
from codehub.db.workspaces import save_deletion, set_desired_state
from codehub.domain.conditions import (
    NOT_OBSERVED,
    ArchiveFact,
    Conditions,
    ContainerFact,
    Observation,
    Reason,
    Resource,
    Snapshot,
    VolumeFact,
    WorkspaceId,
    conditions_to_json,
)
from codehub.domain.deletion import request_deletion, undelete
from codehub.domain.judge import judge
from codehub.domain.limits import counts_as_running
from codehub.domain.planner import Decision, plan
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from testkit.rows import NOW, add_snapshot, add_user, add_workspace, new_workspace_id

# A container that exited or never responded, or a leftover volume: only an observation finds these.
FACTS = [
    Observation(container, volume, archive)
    for container, volume, archive in product(
        ContainerFact, VolumeFact, (ArchiveFact.PRESENT, ArchiveFact.ABSENT)
    )
    if container not in {ContainerFact.NOT_READY, ContainerFact.UNHEALTHY}
]
ERRORS = [None, ErrorReason.ACTION_FAILED, ErrorReason.TIMEOUT]
CONTAINER_REASONS = [Reason.NOT_OBSERVED, Reason.ABSENT, Reason.NOT_READY, Reason.READY]
RUNS = conditions_to_json(Conditions(container_ready=replace(NOT_OBSERVED, reason=Reason.READY)))
# Deleted or not, purged or not.
DELETIONS = [(False, False), (True, False), (True, True)]


def snapshots() -> list[Snapshot]:
    """Return everything that an observation may result in."""
    return [
        judge(
            Snapshot(
                workspace_id=new_workspace_id(),
                desired_state=DesiredState.DELETED if deleted else desired,
                operation=operation,
                archive_key=key,
                restore_marker=key,
                error_reason=error,
                deleted=deleted,
                purge=purge,
            ),
            facts,
            NOW,
        )
        for facts, desired, operation, key, error, (deleted, purge) in product(
            FACTS,
            (DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED),
            (Operation.NONE, Operation.STOPPING),
            (None, "key"),
            ERRORS,
            DELETIONS,
        )
    ]


async def find(
    session: AsyncSession, limit: int, *, now: datetime = NOW, silent: Sequence[Resource] = ()
) -> list[WorkspaceId]:
    return [each.workspace_id for each in await not_converged(session, limit, now=now, silent=silent)]


async def test_unfinished_workspaces_are_those_that_the_planner_has_work_for(database: Database) -> None:
    rows = snapshots()
    async with database.transaction() as session:
        owner = await add_user(session)
        for snapshot in rows:
            await add_snapshot(session, owner, snapshot)
        found = set(await find(session, len(rows)))
    expected = {
        row.workspace_id for row in rows if plan(row).decision not in {Decision.CONVERGED, Decision.HALT}
    }
    assert found == expected


def every_state() -> list[Snapshot]:
    """Return each combination of what the limits depend on, possible or not."""
    desired_states = [
        *product((DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED), (False,)),
        (DesiredState.DELETED, True),
    ]
    return [
        Snapshot(
            workspace_id=new_workspace_id(),
            desired_state=desired,
            phase=phase,
            conditions=Conditions(container_ready=replace(NOT_OBSERVED, reason=reason)),
            error_reason=ErrorReason.TIMEOUT if phase is Phase.ERROR else None,
            deleted=deleted,
        )
        for phase, (desired, deleted), reason in product(Phase, desired_states, CONTAINER_REASONS)
    ]


async def test_running_workspaces_are_those_that_the_domain_counts(database: Database) -> None:
    rows = every_state()
    async with database.transaction() as session:
        owner, other = await add_user(session), await add_user(session)
        for snapshot in rows:
            await add_snapshot(session, owner, snapshot)
        await add_workspace(session, other, desired_state="RUNNING")
        own = {row.workspace_id for row in await list_running(session, owner)}
        assert await count_running(session) == len(own) + 1
        one = min(own)
        assert {row.workspace_id for row in await list_running(session, owner, excluding=one)} == own - {one}
        assert await count_running(session, excluding=one) == len(own)
    expected = {
        row.workspace_id
        for row in rows
        if counts_as_running(
            row.phase,
            row.desired_state,
            deleted=row.deleted,
            container_exists=row.conditions.container_exists,
        )
    }
    assert own == expected


async def test_a_workspace_that_was_never_observed_takes_no_slot(database: Database) -> None:
    async with database.transaction() as session:
        await add_workspace(session, await add_user(session), conditions={})
        assert await count_running(session) == 0


async def test_deletion_whose_wake_was_lost_is_found(database: Database) -> None:
    async with database.transaction() as session:
        workspace_id = await add_workspace(
            session, await add_user(session), phase="RUNNING", desired_state="DELETED", deleted_at=NOW
        )
        assert await find(session, 10) == [workspace_id]


async def test_workspaces_observed_longest_ago_come_first(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        newest = await add_workspace(session, owner, observed_at=NOW)
        oldest = await add_workspace(session, owner, observed_at=NOW - timedelta(days=1))
        never = await add_workspace(session, owner, desired_state="DELETED", deleted_at=NOW)
        assert await find(session, 10) == [never, oldest, newest]
        assert await find(session, 1) == [never]


async def test_a_workspace_that_waits_for_a_silent_provider_is_left_alone_until_it_responds(
    database: Database,
) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        waiting = {"waiting_for": ["archive"], "waiting_since": NOW, "observed_at": NOW}
        workspace_id = await add_workspace(session, owner, phase="STANDBY", **waiting)
        assert await find(session, 10, silent=[Resource.ARCHIVE]) == []
        assert await find(session, 10, silent=[Resource.VOLUME]) == [workspace_id]
        assert await find(session, 10) == [workspace_id]


async def test_a_workspace_that_keeps_waiting_is_observed_ever_less_often(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        for hours, pause in ((2, timedelta(hours=1)), (100, timedelta(hours=1)), (1, timedelta(minutes=30))):
            since = NOW - timedelta(hours=hours)
            waiting = {"waiting_for": ["archive"], "waiting_since": since, "observed_at": NOW}
            workspace_id = await add_workspace(session, owner, phase="STANDBY", **waiting)
            assert workspace_id not in await find(session, 10, now=NOW + pause - timedelta(seconds=1))
            assert workspace_id in await find(session, 10, now=NOW + pause)


async def test_a_purge_is_left_alone_until_its_next_attempt(database: Database) -> None:
    deletion = {"phase": "DELETING", "desired_state": "DELETED", "deleted_at": NOW, "purge": True}
    async with database.transaction() as session:
        owner = await add_user(session)
        workspace_id = await add_workspace(session, owner, **deletion, retry_at=NOW + timedelta(seconds=1))
        assert await find(session, 10) == []
        assert await find(session, 10, now=NOW + timedelta(seconds=1)) == [workspace_id]


async def test_a_claimed_operation_is_marked_as_busy(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        await add_workspace(session, owner, operation="PROVISIONING", op_started_at=NOW, observed_at=NOW)
        await add_workspace(session, owner)
        assert [each.busy for each in await not_converged(session, 10, now=NOW)] == [False, True]


@pytest.mark.parametrize("ask", ["state", "deletion", "undeletion", "recovery"])
async def test_a_new_request_is_not_delayed_by_what_the_last_one_waited_for(
    database: Database, ask: str
) -> None:
    silent = [Resource.ARCHIVE]
    async with database.transaction() as session:
        workspace_id = await add_workspace(
            session,
            await add_user(session),
            phase="STANDBY",
            desired_state="ARCHIVED",
            waiting_for=silent,
            waiting_since=NOW - timedelta(hours=5),
            observed_at=NOW,
        )
        assert await find(session, 10, now=NOW, silent=silent) == []
        waiting = await load_snapshot(session, workspace_id)
        assert waiting is not None
        if ask == "state":
            await set_desired_state(session, workspace_id, DesiredState.RUNNING, NOW)
        elif ask == "deletion":
            await save_deletion(session, request_deletion(waiting, purge=True), NOW)
        elif ask == "undeletion":
            await save_deletion(session, undelete(request_deletion(waiting, purge=False)), NOW)
        else:
            await set_recover_request(session, workspace_id, RecoverRequest(RecoverChoice.RETRY, NOW), NOW)
        assert await find(session, 10, now=NOW, silent=silent) == [workspace_id]


async def test_a_deletion_after_one_that_was_undone_is_not_taken_for_finished(database: Database) -> None:
    async with database.transaction() as session:
        workspace_id = await add_workspace(
            session,
            await add_user(session),
            phase="DELETED",
            desired_state="DELETED",
            deleted_at=NOW,
            archive_key="a/b",
        )
        deleted = await load_snapshot(session, workspace_id)
        assert deleted is not None
        await save_deletion(session, undelete(deleted), NOW)
        undeleted = await load_snapshot(session, workspace_id)
        assert undeleted is not None
        assert (undeleted.phase, undeleted.deleted) == (Phase.ARCHIVED, False)
        await save_deletion(session, request_deletion(undeleted, purge=True), NOW)
        assert await find(session, 10, now=NOW) == [workspace_id]


async def test_a_deletion_that_needs_a_person_does_not_free_its_slot_by_itself(database: Database) -> None:
    deleting = {"phase": "DELETING", "desired_state": "DELETED", "deleted_at": NOW, "conditions": RUNS}
    async with database.transaction() as session:
        owner = await add_user(session)
        goes_on = await add_workspace(session, owner, **deleting)
        halted = await add_workspace(session, owner, **deleting, error_reason="RetryExceeded")
        found = {each.workspace_id: each.is_stopping for each in await list_running(session, owner)}
    assert found == {goes_on: True, halted: False}


async def test_a_workspace_that_waits_to_be_archived_counts_as_unfinished(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        requested = {"phase": "STANDBY", "desired_state": "ARCHIVED"}
        await add_workspace(session, owner, **requested)
        await add_workspace(session, owner, **requested, operation="ARCHIVING", op_started_at=NOW)
        await add_workspace(session, owner, phase="ARCHIVED", desired_state="ARCHIVED", archive_key="a/b")
        await add_workspace(session, owner, phase="STANDBY", desired_state="STANDBY")
        assert await count_unfinished(session, DesiredState.ARCHIVED) == 2


async def test_events_are_kept_in_order(database: Database) -> None:
    workspace_id = new_workspace_id()
    async with database.transaction() as session:
        for kind in (EventKind.CREATED, EventKind.STATE_REQUESTED):
            await record_event(session, workspace_id, kind, NOW, actor="ann", detail={"kind": kind})
        kinds = await session.scalars(select(WorkspaceEvent.kind).order_by(WorkspaceEvent.id))
    assert list(kinds) == [EventKind.CREATED, EventKind.STATE_REQUESTED]
