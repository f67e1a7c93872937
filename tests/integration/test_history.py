"""The audit trail is read in pages, and counted without missing an event."""

import asyncio
from datetime import datetime, timedelta

import pytest
from sqlalchemy import event

from codehub.db.events import (
    EventCount,
    EventKind,
    count_events_since,
    last_event_id,
    list_events,
    record_event,
)
from codehub.db.operations import list_operations, load_operation
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.history import OperationRecord, OperationResult
from codehub.domain.states import ErrorReason, Operation, Phase
from testkit.rows import NOW, new_workspace_id

SECOND = timedelta(seconds=1)
UNREACHABLE = ErrorReason.UNREACHABLE


async def write(
    database: Database,
    workspace_id: WorkspaceId,
    kind: EventKind,
    operation: Operation = Operation.STARTING,
    *,
    at: datetime = NOW,
    message: str | None = None,
) -> None:
    async with database.transaction() as session:
        await record_event(
            session,
            workspace_id,
            kind,
            at,
            actor="control-plane",
            operation=operation,
            phase=Phase.STANDBY,
            error_reason=UNREACHABLE if message else None,
            detail={"message": message} if message else None,
        )


async def operations(
    database: Database, workspace_id: WorkspaceId, before: int | None = None, limit: int = 10
) -> list[OperationRecord]:
    async with database.transaction() as session:
        return await list_operations(session, workspace_id, before=before, limit=limit)


async def run_operations(database: Database, workspace_id: WorkspaceId, count: int) -> None:
    for _ in range(count):
        await write(database, workspace_id, EventKind.OPERATION_CLAIMED)
        await write(database, workspace_id, EventKind.ATTEMPT_FAILED, message="Docker does not respond.")
        await write(database, workspace_id, EventKind.OPERATION_COMPLETED)
        await write(database, workspace_id, EventKind.STATE_REQUESTED, Operation.NONE)


async def test_operation_is_listed_from_claim_to_end(database: Database) -> None:
    workspace_id = new_workspace_id()
    await write(database, workspace_id, EventKind.CREATED, Operation.NONE)
    await write(database, workspace_id, EventKind.OPERATION_CLAIMED)
    await write(database, new_workspace_id(), EventKind.OPERATION_CLAIMED, Operation.ARCHIVING)
    await write(database, workspace_id, EventKind.ATTEMPT_FAILED, message="Docker does not respond.")
    await write(database, workspace_id, EventKind.OPERATION_FAILED, at=NOW + SECOND, message="Gave up.")
    assert await operations(database, workspace_id) == [
        OperationRecord(
            operation=Operation.STARTING,
            started_at=NOW,
            ended_at=NOW + SECOND,
            result=OperationResult.FAILED,
            attempts=2,
            error_reason=UNREACHABLE,
            message="Gave up.",
            event_id=2,
        )
    ]


async def test_workspace_without_operations_has_none(database: Database) -> None:
    workspace_id = new_workspace_id()
    await write(database, workspace_id, EventKind.CREATED, Operation.NONE)
    assert await operations(database, workspace_id) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
async def test_pages_together_are_the_whole_history(database: Database, limit: int) -> None:
    workspace_id = new_workspace_id()
    await run_operations(database, workspace_id, 2)
    await write(database, workspace_id, EventKind.OPERATION_CLAIMED, Operation.STOPPING)  # no end
    await run_operations(database, workspace_id, 2)
    await write(database, workspace_id, EventKind.OPERATION_CLAIMED, Operation.ARCHIVING)
    found: list[OperationRecord] = []
    while page := await operations(database, workspace_id, found[-1].event_id if found else None, limit):
        assert len(page) <= limit
        found += page
    assert found == await operations(database, workspace_id)
    completed = OperationResult.COMPLETED
    results = [OperationResult.RUNNING, completed, completed, OperationResult.ABANDONED, completed, completed]
    assert [record.result for record in found] == results


async def test_a_longer_history_does_not_make_a_page_read_more_events(database: Database) -> None:
    workspace_id = new_workspace_id()
    await run_operations(database, workspace_id, 50)
    rows: list[int] = []

    def count_rows(_connection: object, cursor: object, *_rest: object) -> None:
        rows.append(cursor.rowcount)  # type: ignore[attr-defined]

    engine = database.engine.sync_engine
    event.listen(engine, "after_cursor_execute", count_rows)
    try:
        assert len(await operations(database, workspace_id, limit=2)) == 2
    finally:
        event.remove(engine, "after_cursor_execute", count_rows)
    assert rows == [6]


async def test_events_are_listed_newest_first_in_pages(database: Database) -> None:
    workspace_id = new_workspace_id()
    await write(database, workspace_id, EventKind.CREATED, Operation.NONE)
    await write(database, new_workspace_id(), EventKind.CREATED)
    await write(database, workspace_id, EventKind.ATTEMPT_FAILED, message="Docker does not respond.")
    async with database.transaction() as session:
        [newest] = await list_events(session, workspace_id, before=None, limit=1)
        [oldest] = await list_events(session, workspace_id, before=newest.id, limit=5)
        assert await list_events(session, workspace_id, before=oldest.id, limit=5) == []
    assert (newest.kind, newest.operation, newest.phase) == (
        EventKind.ATTEMPT_FAILED,
        Operation.STARTING,
        Phase.STANDBY,
    )
    assert (newest.at, newest.actor, newest.error_reason) == (NOW, "control-plane", UNREACHABLE)
    assert newest.detail == {"message": "Docker does not respond."}
    assert (oldest.kind, oldest.operation, oldest.detail) == (EventKind.CREATED, Operation.NONE, {})


async def test_counting_starts_at_the_last_event(database: Database) -> None:
    async with database.transaction() as session:
        assert await last_event_id(session) == 0
    await run_operations(database, new_workspace_id(), 1)
    async with database.transaction() as session:
        last_id = await last_event_id(session)
        counted = await count_events_since(session, last_id, NOW)
    assert (counted.counts, counted.last_id) == ((), last_id)


async def test_new_events_are_counted_by_kind(database: Database) -> None:
    await run_operations(database, new_workspace_id(), 2)
    async with database.transaction() as session:
        counted = await count_events_since(session, 0, NOW)
        assert counted.last_id == await last_event_id(session)
    claimed = EventCount(EventKind.OPERATION_CLAIMED, Operation.STARTING, "control-plane", None, 2)
    assert claimed in counted.counts
    failed = EventCount(EventKind.ATTEMPT_FAILED, Operation.STARTING, "control-plane", UNREACHABLE, 2)
    assert failed in counted.counts
    assert len(counted.counts) == 4


async def test_event_that_is_too_new_is_counted_the_next_time(database: Database) -> None:
    workspace_id = new_workspace_id()
    for at in (NOW, NOW + SECOND, NOW):
        await write(database, workspace_id, EventKind.OPERATION_CLAIMED, at=at)
    async with database.transaction() as session:
        first = await count_events_since(session, 0, NOW)
        second = await count_events_since(session, first.last_id, NOW + SECOND)
    assert [each.count for each in (*first.counts, *second.counts)] == [1, 2]
    assert second.last_id == 3


async def test_every_event_is_counted_once_while_others_write(database: Database) -> None:
    """Transactions of writers are short, and counting stays a moment behind."""
    start, moments = NOW, 40

    async def write_at(moment: int) -> None:
        await asyncio.gather(
            *(
                write(database, new_workspace_id(), EventKind.CREATED, at=start + moment * SECOND)
                for _ in range(3)
            )
        )

    total, last_id = 0, 0
    for moment in range(moments):
        _, counted = await asyncio.gather(write_at(moment), count(database, last_id, moment - 1))
        total, last_id = total + counted[0], counted[1]
    rest, _ = await count(database, last_id, moments)
    assert total + rest == 3 * moments


async def count(database: Database, last_id: int, moment: int) -> tuple[int, int]:
    async with database.transaction() as session:
        counted = await count_events_since(session, last_id, NOW + moment * SECOND)
    return sum(each.count for each in counted.counts), counted.last_id


async def test_one_operation_is_loaded_by_its_claim(database: Database) -> None:
    workspace_id = new_workspace_id()
    for kind in (
        EventKind.STATE_REQUESTED,
        EventKind.OPERATION_CLAIMED,
        EventKind.ATTEMPT_FAILED,
        EventKind.OPERATION_COMPLETED,
        EventKind.OPERATION_CLAIMED,
        EventKind.OPERATION_CLAIMED,
        EventKind.ATTEMPT_FAILED,
    ):
        await write(database, workspace_id, kind)
    async with database.transaction() as session:
        listed = await list_operations(session, workspace_id, before=None, limit=10)
        results = [each.result for each in listed]
        assert results == [OperationResult.RUNNING, OperationResult.ABANDONED, OperationResult.COMPLETED]
        for record in listed:
            assert await load_operation(session, workspace_id, record.event_id) == record
            assert await load_operation(session, new_workspace_id(), record.event_id) is None
        # Ids of events that are not claims.
        for event_id in (listed[-1].event_id - 1, listed[-1].event_id + 1, listed[0].event_id + 99):
            assert await load_operation(session, workspace_id, event_id) is None
