"""Old rows are removed in batches, and no others."""

from datetime import datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select

from codehub.db import retention
from codehub.db.archives import mark_collected, mark_orphans, record_archive
from codehub.db.events import EventKind, record_event
from codehub.db.models import ApiToken, Archive, Base, Session, Workspace, WorkspaceEvent
from codehub.db.recoveries import lock_snapshot
from codehub.db.retention import RemoveOld, list_uncollected
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import archive_key
from codehub.domain.retention import DeletedWorkspace, may_forget
from codehub.domain.states import Operation, Phase
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

LONG_AGO, RECENTLY = NOW - timedelta(days=1), NOW + timedelta(days=1)
ALL = 1000
# The archive that a row names: none, no record, exists, removed.
ARCHIVES = ["none", "unrecorded", "stored", "collected", "collected, another stored"]


async def remove(database: Database, kind: RemoveOld, limit: int = ALL) -> int:
    async with database.transaction() as session:
        return await kind(session, NOW, limit)


async def ids(database: Database) -> set[WorkspaceId]:
    async with database.transaction() as session:
        return {WorkspaceId(str(each)) for each in await session.scalars(select(Workspace.id))}


async def count(database: Database, table: type[Base]) -> int:
    async with database.transaction() as session:
        return (await session.scalars(select(func.count()).select_from(table))).one()


async def add_deleted(
    database: Database, archives: str = "none", deleted_at: datetime | None = LONG_AGO, **columns: object
) -> WorkspaceId:
    workspace_id = new_workspace_id()
    key, another = archive_key(workspace_id, str(uuid4())), archive_key(workspace_id, str(uuid4()))
    values: dict[str, Any] = {
        "phase": "DELETED",
        "desired_state": "DELETED",
        "deleted_at": deleted_at,
        "archive_key": None if archives == "none" else key,
        **columns,
    }
    async with database.transaction() as session:
        await add_workspace(session, await add_user(session), id=UUID(workspace_id), **values)
        if archives not in ("none", "unrecorded"):
            await record_archive(session, key, size_bytes=1, sha256="0" * 64, now=NOW)
        if archives.startswith("collected"):
            await mark_collected(session, key, LONG_AGO)
        if archives.endswith("another stored"):
            await record_archive(session, another, size_bytes=1, sha256="0" * 64, now=NOW)
    return workspace_id


async def test_the_removed_rows_are_those_that_the_domain_allows(database: Database) -> None:
    expected = set()
    for phase, operation, archives, deleted_at in product(
        (Phase.DELETED, Phase.DELETING, Phase.ARCHIVED),
        (Operation.NONE, Operation.DELETING),
        ARCHIVES,
        (LONG_AGO, RECENTLY),
    ):
        started_at = None if operation is Operation.NONE else NOW
        columns = {"phase": phase, "operation": operation, "op_started_at": started_at}
        workspace_id = await add_deleted(database, archives, deleted_at, **columns)
        has_archives = archives not in ("none", "collected")
        if may_forget(DeletedWorkspace(phase, operation, deleted_at, has_archives), NOW):
            expected.add(workspace_id)
    before = await ids(database)
    assert await remove(database, retention.remove_workspaces) == len(expected) == 2
    assert before - await ids(database) == expected


async def test_an_undeleted_workspace_is_kept(database: Database) -> None:
    kept = await add_deleted(database, desired_state="ARCHIVED", deleted_at=None)
    assert await remove(database, retention.remove_workspaces) == 0
    assert await ids(database) == {kept}


async def test_a_locked_row_is_left_for_the_next_run(database: Database) -> None:
    held, free = await add_deleted(database), await add_deleted(database)
    async with database.transaction() as session:
        assert await lock_snapshot(session, held)
        assert await remove(database, retention.remove_workspaces) == 1
    assert await ids(database) == {held}
    assert free not in await ids(database)


async def test_the_oldest_rows_are_removed_first_up_to_the_limit(database: Database) -> None:
    ages = [timedelta(days=days) for days in (5, 9, 7)]
    youngest, oldest, middle = [await add_deleted(database, deleted_at=NOW - age) for age in ages]
    assert await remove(database, retention.remove_workspaces, limit=1) == 1
    assert await ids(database) == {youngest, middle}
    assert oldest not in await ids(database)


async def test_archives_without_a_recorded_removal_are_found(database: Database) -> None:
    workspaces = {archives: await add_deleted(database, archives) for archives in ARCHIVES}
    await add_deleted(database, "stored", RECENTLY)
    async with database.transaction() as session:
        found = await list_uncollected(session, NOW, ALL)
    assert {key.split("/")[1] for key in found} == {
        workspaces[each] for each in ("unrecorded", "stored", "collected, another stored")
    }
    assert len(found) == 3


async def test_the_record_of_an_archive_is_removed_after_the_row_that_names_it(database: Database) -> None:
    await add_deleted(database, "collected", RECENTLY)
    assert await remove(database, retention.remove_archives) == 0
    gone = archive_key(new_workspace_id(), str(uuid4()))
    fresh = archive_key(new_workspace_id(), str(uuid4()))
    stored = archive_key(new_workspace_id(), str(uuid4()))
    async with database.transaction() as session:
        await mark_orphans(session, [gone, fresh, stored], LONG_AGO)
        await mark_collected(session, gone, LONG_AGO)
        await mark_collected(session, fresh, RECENTLY)
    assert await remove(database, retention.remove_archives) == 1
    async with database.transaction() as session:
        left = set(await session.scalars(select(Archive.key)))
    assert gone not in left
    assert {fresh, stored} < left


async def test_events_are_removed_by_age(database: Database) -> None:
    workspace_id = new_workspace_id()
    async with database.transaction() as session:
        for moment in (LONG_AGO, LONG_AGO, RECENTLY):
            await record_event(session, workspace_id, EventKind.CREATED, moment, actor="ann")
    assert await remove(database, retention.remove_events, limit=1) == 1
    assert await remove(database, retention.remove_events) == 1
    assert await count(database, WorkspaceEvent) == 1


async def test_sessions_are_removed_long_after_their_end(database: Database) -> None:
    async with database.transaction() as session:
        user = await add_user(session)
        for expires_at, revoked_at in ((LONG_AGO, None), (LONG_AGO, LONG_AGO), (RECENTLY, LONG_AGO)):
            values = {"expires_at": expires_at, "revoked_at": revoked_at, "token_hash": uuid4().bytes}
            await session.execute(insert(Session).values(id=uuid4(), user_id=user, **values))
    assert await remove(database, retention.remove_sessions) == 2
    assert await count(database, Session) == 1


@pytest.mark.parametrize(
    ("expires_at", "revoked_at", "goes"),
    [
        (None, None, False),
        (RECENTLY, None, False),
        (LONG_AGO, None, True),
        (None, LONG_AGO, True),
        (RECENTLY, LONG_AGO, True),
        (None, RECENTLY, False),
    ],
)
async def test_tokens_are_removed_long_after_their_end(
    database: Database, expires_at: datetime | None, revoked_at: datetime | None, goes: bool
) -> None:
    async with database.transaction() as session:
        values = {"expires_at": expires_at, "revoked_at": revoked_at, "token_hash": uuid4().bytes}
        user = await add_user(session)
        await session.execute(insert(ApiToken).values(id=uuid4(), user_id=user, name="token", **values))
    assert await remove(database, retention.remove_tokens) == goes
    assert await count(database, ApiToken) == (not goes)
