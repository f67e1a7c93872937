"""When a workspace was used, by quarters of an hour."""

from datetime import UTC, datetime, timedelta

import pytest

from codehub.db.retention import remove_usage
from codehub.db.session import Database
from codehub.db.usage import BUCKET, bucket_of, list_usage, record_usage
from codehub.domain.conditions import WorkspaceId
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id


async def new_workspaces(database: Database, count: int) -> list[WorkspaceId]:
    async with database.transaction() as session:
        owner = await add_user(session)
        return [await add_workspace(session, owner) for _ in range(count)]


async def note(database: Database, workspace_id: WorkspaceId, *moments: datetime) -> None:
    async with database.transaction() as session:
        for moment in moments:
            await record_usage(session, {workspace_id: moment})


async def used(database: Database, workspace_id: WorkspaceId, since: datetime = NOW) -> list[datetime]:
    async with database.transaction() as session:
        return await list_usage(session, workspace_id, since)


@pytest.mark.parametrize(
    ("moment", "bucket"),
    [
        ("2026-07-01T12:00:00+00:00", "2026-07-01T12:00:00+00:00"),
        ("2026-07-01T12:14:59.999999+00:00", "2026-07-01T12:00:00+00:00"),
        ("2026-07-01T12:15:00+00:00", "2026-07-01T12:15:00+00:00"),
        ("2026-07-01T05:59:00+05:45", "2026-07-01T00:00:00+00:00"),
    ],
)
def test_a_quarter_of_an_hour_begins_in_utc(moment: str, bucket: str) -> None:
    found = bucket_of(datetime.fromisoformat(moment))
    assert (found, found.tzinfo) == (datetime.fromisoformat(bucket), UTC)


async def test_uses_in_the_same_quarter_of_an_hour_are_recorded_once(database: Database) -> None:
    one, other = await new_workspaces(database, 2)
    await note(database, one, NOW + BUCKET, NOW, NOW + timedelta(minutes=14), NOW + timedelta(minutes=1))
    await note(database, other, NOW + BUCKET * 2)
    assert await used(database, one) == [NOW, NOW + BUCKET]
    assert await used(database, one, since=NOW + BUCKET) == [NOW + BUCKET]
    assert await used(database, other) == [NOW + BUCKET * 2]


async def test_use_of_an_unknown_workspace_is_ignored(database: Database) -> None:
    [known] = await new_workspaces(database, 1)
    unknown = new_workspace_id()
    async with database.transaction() as session:
        await record_usage(session, {})
        await record_usage(session, {known: NOW, unknown: NOW})
    assert await used(database, known) == [NOW]
    assert await used(database, unknown) == []


async def test_the_oldest_rows_are_removed_in_batches(database: Database) -> None:
    [workspace_id] = await new_workspaces(database, 1)
    await note(database, workspace_id, *(NOW + BUCKET * number for number in range(5)))
    async with database.transaction() as session:
        await remove_usage(session, NOW + BUCKET * 3, 2)
    assert await used(database, workspace_id) == [NOW + BUCKET * number for number in (2, 3, 4)]
    async with database.transaction() as session:
        await remove_usage(session, NOW + BUCKET * 3, 2)
    assert await used(database, workspace_id) == [NOW + BUCKET * 3, NOW + BUCKET * 4]
