"""Recovering and undeleting through the service layer."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.archives import is_collected, load_owners, mark_collected, mark_orphans
from codehub.db.models import Archive, Workspace, WorkspaceEvent
from codehub.db.recoveries import RecoverRequest, load_recover_request, mark_recovery_handled
from codehub.db.session import Database
from codehub.db.sweeps import not_converged
from codehub.domain.conditions import ContainerFact, Snapshot, WorkspaceId
from codehub.domain.deletion import request_deletion
from codehub.domain.limits import LimitScope, RunningLimits
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.deletion import undelete_workspace
from codehub.services.errors import InvalidState, LimitExceeded, OperationInProgress, WorkspaceNotFound
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from testkit.rows import NOW, add_snapshot, add_user, add_workspace, new_workspace_id
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NOTHING,
    OLD_KEY,
    VOLUME_AND_ARCHIVE,
    VOLUME_ONLY,
    WORKSPACE,
    archived,
    new_snapshot,
    observed,
    running,
    standby,
)

LIMITS = RunningLimits(per_user=1, total=1)
LATER = NOW + timedelta(minutes=1)

VOLUME_LOST = observed(standby(DesiredState.RUNNING), ARCHIVE_ONLY)
FOR_A_LOST_VOLUME = (RecoverChoice.RETRY, RecoverChoice.RESTORE_ARCHIVE, RecoverChoice.START_EMPTY)
ARCHIVE_LOST = observed(archived(), NOTHING)
TIMED_OUT = observed(replace(standby(), error_reason=ErrorReason.TIMEOUT, error_count=1), VOLUME_AND_ARCHIVE)
STRAY = observed(archived(), replace(ARCHIVE_ONLY, container=ContainerFact.READY))
HALTED_DELETION = observed(
    replace(standby(DesiredState.DELETED), deleted=True, error_reason=ErrorReason.TIMEOUT), VOLUME_AND_ARCHIVE
)
DELETED = observed(request_deletion(archived(), purge=False), ARCHIVE_ONLY)


async def store(database: Database, snapshot: Snapshot) -> UUID:
    async with database.transaction() as session:
        owner = await add_user(session)
        await add_snapshot(session, owner, snapshot)
    return owner


async def ask(
    database: Database, choice: RecoverChoice | None, *, limits: RunningLimits = LIMITS, now: datetime = NOW
) -> RecoverChoice:
    return await request_recovery(database, WORKSPACE, choice, context=RequestContext("ann", limits, now))


async def undelete(database: Database) -> None:
    await undelete_workspace(database, WORKSPACE, context=RequestContext("ann", RunningLimits(), LATER))


async def read_row(database: Database) -> dict[str, Any]:
    async with database.transaction() as session:
        statement = select(Workspace.__table__).where(Workspace.id == UUID(WORKSPACE))
        return dict((await session.execute(statement)).mappings().one())


async def events(database: Database) -> list[tuple[str, str, object]]:
    async with database.transaction() as session:
        columns = (WorkspaceEvent.kind, WorkspaceEvent.actor, WorkspaceEvent.detail)
        rows = await session.execute(select(*columns).order_by(WorkspaceEvent.id))
        return [(row[0], row[1], row[2]) for row in rows]


async def pending(database: Database) -> RecoverRequest | None:
    async with database.transaction() as session:
        return await load_recover_request(session, WORKSPACE)


async def mark_handled(database: Database) -> None:
    async with database.transaction() as session:
        request = await load_recover_request(session, WORKSPACE)
        assert request is not None
        await mark_recovery_handled(session, WORKSPACE, request)


@pytest.mark.parametrize("snapshot", [TIMED_OUT, STRAY, HALTED_DELETION])
async def test_an_ordinary_error_is_recovered_without_a_choice(
    database: Database, snapshot: Snapshot
) -> None:
    await store(database, snapshot)
    assert await ask(database, None) is RecoverChoice.RETRY
    assert await pending(database) == RecoverRequest(RecoverChoice.RETRY, NOW)
    assert await events(database) == [("recovery_requested", "ann", {"choice": "retry"})]


async def test_a_request_changes_only_what_the_service_layer_owns(database: Database) -> None:
    await store(database, VOLUME_LOST)
    before = await read_row(database)
    await ask(database, RecoverChoice.START_EMPTY, now=LATER)
    after = await read_row(database)
    changed = {column for column in after if after[column] != before[column]}
    # A trigger increments the version.
    assert changed == {"recover_choice", "recover_requested_at", "updated_at", "version"}


async def test_an_error_that_was_never_observed_can_be_recovered(database: Database) -> None:
    """Rows of M1 have no conditions yet."""
    async with database.transaction() as session:
        owner = await add_user(session)
        await add_workspace(session, owner, id=UUID(WORKSPACE), phase="ERROR", error_reason="RetryExceeded")
    assert await ask(database, None) is RecoverChoice.RETRY


@pytest.mark.parametrize(
    ("snapshot", "allowed"),
    [
        (VOLUME_LOST, FOR_A_LOST_VOLUME),
        (ARCHIVE_LOST, (RecoverChoice.RETRY, RecoverChoice.START_EMPTY)),
    ],
)
async def test_lost_data_needs_a_choice_and_the_refusal_lists_the_choices(
    database: Database, snapshot: Snapshot, allowed: tuple[RecoverChoice, ...]
) -> None:
    await store(database, snapshot)
    with pytest.raises(InvalidState) as refusal:
        await ask(database, None)
    assert refusal.value.choices == allowed
    for choice in RecoverChoice:
        assert (f"`{choice}` (" in str(refusal.value)) is (choice in allowed)
    assert await pending(database) is None
    for choice in allowed:
        assert await ask(database, choice) is choice


@pytest.mark.parametrize(
    ("snapshot", "choice"),
    [
        (TIMED_OUT, RecoverChoice.START_EMPTY),
        (ARCHIVE_LOST, RecoverChoice.RESTORE_ARCHIVE),
        (observed(VOLUME_LOST, VOLUME_AND_ARCHIVE), RecoverChoice.RESTORE_ARCHIVE),
    ],
)
async def test_a_choice_that_is_not_possible_is_refused(
    database: Database, snapshot: Snapshot, choice: RecoverChoice
) -> None:
    await store(database, snapshot)
    with pytest.raises(InvalidState, match="not possible here; choose `retry`") as refusal:
        await ask(database, choice)
    assert RecoverChoice.RETRY in refusal.value.choices
    assert await events(database) == []


@pytest.mark.parametrize("snapshot", [running(), request_deletion(TIMED_OUT, purge=True)])
async def test_a_workspace_without_an_error_cannot_be_recovered(
    database: Database, snapshot: Snapshot
) -> None:
    await store(database, snapshot)
    with pytest.raises(InvalidState, match="no error") as refusal:
        await ask(database, RecoverChoice.RETRY)
    assert refusal.value.choices == ()


async def test_recovery_waits_for_an_operation(database: Database) -> None:
    await store(database, replace(standby(), operation=Operation.STARTING))
    with pytest.raises(OperationInProgress) as refusal:
        await ask(database, None)
    assert (refusal.value.operation, refusal.value.since) == (Operation.STARTING, NOW)
    with pytest.raises(OperationInProgress):
        await undelete(database)


async def test_a_missing_workspace_cannot_be_recovered(database: Database) -> None:
    with pytest.raises(WorkspaceNotFound):
        await ask(database, None)
    with pytest.raises(WorkspaceNotFound):
        await undelete(database)
    await store(database, observed(replace(DELETED, error_reason=ErrorReason.TIMEOUT), ARCHIVE_ONLY))
    with pytest.raises(WorkspaceNotFound):
        await ask(database, None)


async def test_a_later_request_replaces_one_that_was_not_carried_out(database: Database) -> None:
    await store(database, VOLUME_LOST)
    await ask(database, RecoverChoice.START_EMPTY)
    await ask(database, RecoverChoice.RETRY)
    request = await pending(database)
    assert request is not None
    assert request.choice is RecoverChoice.RETRY
    # The time identifies the request, so it differs although the clock did not advance.
    assert request.requested_at > NOW


@pytest.mark.parametrize("clock", [NOW, NOW - timedelta(hours=1)])
async def test_a_request_after_a_handled_one_is_new_whatever_the_clock_says(
    database: Database, clock: datetime
) -> None:
    await store(database, TIMED_OUT)
    await ask(database, None)
    await mark_handled(database)
    assert await pending(database) is None
    await ask(database, None, now=clock)
    assert await pending(database) is not None


async def test_of_two_concurrent_requests_one_is_left(database: Database) -> None:
    await store(database, VOLUME_LOST)
    chosen = await asyncio.gather(*(ask(database, choice) for choice in FOR_A_LOST_VOLUME for _ in range(5)))
    request = await pending(database)
    assert request is not None
    assert request.choice in chosen
    assert request.requested_at == NOW + timedelta(microseconds=len(chosen) - 1)


async def test_a_workspace_that_should_run_keeps_its_slot_in_an_error(database: Database) -> None:
    """It took its slot when RUNNING was requested, and an error does not free it."""
    owner = await store(database, VOLUME_LOST)
    async with database.transaction() as session:
        statement = select(func.count()).select_from(Workspace).where(text(predicates.COUNTS_AS_RUNNING))
        assert await session.scalar(statement) == 1
        await add_workspace(session, owner, desired_state="STANDBY", phase="STANDBY")
    await ask(database, RecoverChoice.RETRY, limits=RunningLimits(per_user=1, total=1))


async def test_lowered_limits_apply_to_a_recovery(database: Database) -> None:
    owner = await store(database, VOLUME_LOST)
    async with database.transaction() as session:
        other = await add_workspace(session, owner, desired_state="RUNNING", phase="RUNNING")
    with pytest.raises(LimitExceeded) as refusal:
        await ask(database, RecoverChoice.RETRY)
    assert refusal.value.scope is LimitScope.USER
    assert [each.workspace_id for each in refusal.value.running] == [other]
    assert await pending(database) is None


async def test_a_workspace_that_should_not_run_needs_no_slot(database: Database) -> None:
    owner = await store(database, TIMED_OUT)
    async with database.transaction() as session:
        await add_workspace(session, owner, desired_state="RUNNING", phase="RUNNING")
    await ask(database, None)


async def unfinished(session: AsyncSession) -> list[WorkspaceId]:
    return [each.workspace_id for each in await not_converged(session, 10, now=NOW)]


@pytest.mark.parametrize("snapshot", [TIMED_OUT, HALTED_DELETION])
async def test_the_sweep_finds_a_recovering_workspace_once(database: Database, snapshot: Snapshot) -> None:
    await store(database, snapshot)
    async with database.transaction() as session:
        assert await unfinished(session) == []
    await ask(database, None)
    async with database.transaction() as session:
        assert await unfinished(session) == [WORKSPACE]
        # A purge is also found as a deletion.
        values = "desired_state = 'DELETED', deleted_at = now(), purge = true"
        await session.execute(text(f"UPDATE workspaces SET {values}"))  # noqa: S608
        assert await unfinished(session) == [WORKSPACE]
    await mark_handled(database)
    async with database.transaction() as session:
        await session.execute(text("UPDATE workspaces SET phase = 'DELETED'"))
        assert await unfinished(session) == []


@pytest.mark.parametrize(
    "snapshot",
    [
        DELETED,
        HALTED_DELETION,
        observed(request_deletion(standby(), purge=False), VOLUME_AND_ARCHIVE),
        # The wake of the deletion has not arrived yet.
        request_deletion(running(), purge=False),
        request_deletion(observed(new_snapshot(), VOLUME_ONLY), purge=False),
    ],
)
async def test_a_deletion_is_undone(database: Database, snapshot: Snapshot) -> None:
    await store(database, snapshot)
    before = await read_row(database)
    await undelete(database)
    after = await read_row(database)
    finished = snapshot.phase is Phase.DELETED
    changed = {column for column in after if after[column] != before[column]}
    phase = {"phase", "phase_changed_at"} if finished else set()
    assert changed == {"desired_state", "deleted_at", "updated_at", "version"} | phase
    assert (after["desired_state"], after["deleted_at"]) == ("ARCHIVED", None)
    assert after["phase"] == (Phase.ARCHIVED if finished else before["phase"])
    assert await events(database) == [("undeleted", "ann", {"from": "DELETED", "to": "ARCHIVED"})]
    async with database.transaction() as session:
        # Nothing is left to do after a finished deletion.
        assert await unfinished(session) == ([] if finished else [WORKSPACE])


@pytest.mark.parametrize(
    ("snapshot", "sentence"),
    [
        (archived(), "is not deleted"),
        (request_deletion(running(), purge=True), "without a last archive"),
        (observed(request_deletion(new_snapshot(), purge=False), NOTHING), "left no archive"),
    ],
)
async def test_an_undelete_that_is_refused_says_why(
    database: Database, snapshot: Snapshot, sentence: str
) -> None:
    await store(database, snapshot)
    with pytest.raises(InvalidState, match=sentence):
        await undelete(database)
    assert await events(database) == []


async def test_a_workspace_whose_archive_was_collected_is_not_undeleted(database: Database) -> None:
    await store(database, DELETED)
    async with database.transaction() as session:
        await mark_orphans(session, [OLD_KEY], NOW)
        assert not await is_collected(session, OLD_KEY)
        await mark_collected(session, OLD_KEY, NOW)
    with pytest.raises(InvalidState, match="archive has been removed"):
        await undelete(database)


async def test_the_grace_period_of_an_archive_starts_over_after_an_undelete(database: Database) -> None:
    await store(database, DELETED)
    async with database.transaction() as session:
        await mark_orphans(session, [OLD_KEY], NOW)
    await undelete(database)
    async with database.transaction() as session:
        assert await session.scalar(select(Archive.orphan_since)) is None


async def test_the_collector_sees_an_undelete_before_the_next_observation(database: Database) -> None:
    await store(database, DELETED)
    await undelete(database)
    async with database.transaction() as session:
        owners = await load_owners(session, {WORKSPACE, new_workspace_id()})
    assert {workspace_id: owner.phase for workspace_id, owner in owners.items()} == {
        WORKSPACE: Phase.ARCHIVED
    }
