"""A repeated request creates one workspace."""

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import func, insert, select

from codehub.db.models import IdempotencyKey, Workspace
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState
from codehub.services.errors import IdempotencyConflict, LimitExceeded
from codehub.services.requests import RequestContext
from codehub.services.workspaces import EXPIRED_KEYS_PER_REQUEST, KEY_LIFETIME, create_once
from testkit.rows import NOW, add_user
from tests.integration.test_limits import new_workspace

ONE_EACH = RunningLimits(per_user=1, total=100)
SECOND = timedelta(seconds=1)


async def create(
    database: Database,
    owner: UUID,
    key: str | None = "key",
    request_hash: bytes = b"hash",
    *,
    desired: DesiredState = DesiredState.RUNNING,
    now: datetime = NOW,
) -> WorkspaceId:
    return await create_once(
        database,
        new_workspace(owner, desired),
        idempotency_key=key,
        request_hash=request_hash,
        context=RequestContext("ann", ONE_EACH, now),
    )


async def user(database: Database) -> UUID:
    async with database.transaction() as session:
        return await add_user(session)


async def created(database: Database) -> set[WorkspaceId]:
    async with database.transaction() as session:
        return {WorkspaceId(str(each)) for each in await session.scalars(select(Workspace.id))}


async def add_old_keys(database: Database, owner: UUID, keys: list[str]) -> None:
    old = {"user_id": owner, "request_hash": b"", "workspace_id": owner, "created_at": NOW - 2 * KEY_LIFETIME}
    async with database.transaction() as session:
        await session.execute(insert(IdempotencyKey), [{**old, "key": key} for key in keys])


async def count_keys(database: Database) -> int:
    async with database.transaction() as session:
        return (await session.scalars(select(func.count()).select_from(IdempotencyKey))).one()


async def test_repeated_request_returns_the_first_workspace_even_at_the_limit(database: Database) -> None:
    owner = await user(database)
    first = await create(database, owner)
    assert await create(database, owner, now=NOW + KEY_LIFETIME) == first
    assert await created(database) == {first}


async def test_without_a_key_each_request_creates_a_workspace(database: Database) -> None:
    owner = await user(database)
    made = {await create(database, owner, None, desired=DesiredState.STANDBY) for _ in range(2)}
    assert await created(database) == made
    assert (len(made), await count_keys(database)) == (2, 0)


async def test_other_request_with_the_same_key_is_refused(database: Database) -> None:
    owner = await user(database)
    first = await create(database, owner)
    with pytest.raises(IdempotencyConflict):
        await create(database, owner, request_hash=b"other")
    assert await created(database) == {first}


async def test_the_same_key_of_another_user_is_a_different_key(database: Database) -> None:
    made = {await create(database, await user(database)) for _ in range(2)}
    assert await created(database) == made
    assert len(made) == 2


async def test_refused_request_leaves_its_key_free(database: Database) -> None:
    owner = await user(database)
    await create(database, owner, "first")
    with pytest.raises(LimitExceeded):
        await create(database, owner, "second", desired=DesiredState.RUNNING)
    made = await create(database, owner, "second", desired=DesiredState.STANDBY)
    assert made in await created(database)


async def test_twenty_concurrent_requests_create_one_workspace(database: Database) -> None:
    owner = await user(database)
    results = await asyncio.gather(*(create(database, owner) for _ in range(20)))
    assert set(results) == await created(database)
    assert len(set(results)) == 1


async def test_of_different_concurrent_requests_with_one_key_one_creates_a_workspace(
    database: Database,
) -> None:
    owner = await user(database)
    results = await asyncio.gather(
        *(create(database, owner, request_hash=bytes([number])) for number in range(20)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, IdempotencyConflict) for result in results) == 19
    assert len(await created(database)) == 1


async def test_key_is_free_again_after_a_day(database: Database) -> None:
    owner = await user(database)
    first = await create(database, owner, desired=DesiredState.STANDBY)
    later = NOW + KEY_LIFETIME + SECOND
    second = await create(database, owner, request_hash=b"other", now=later)
    assert await created(database) == {first, second}
    assert await create(database, owner, request_hash=b"other", now=later) == second


async def test_expired_keys_are_removed_in_batches(database: Database) -> None:
    owner = await user(database)
    await add_old_keys(database, owner, [str(number) for number in range(EXPIRED_KEYS_PER_REQUEST + 5)])
    await create(database, owner, "first", desired=DesiredState.STANDBY)
    assert await count_keys(database) == 5 + 1
    await create(database, owner, "second", desired=DesiredState.STANDBY)
    assert await count_keys(database) == 2


async def test_concurrent_requests_do_not_wait_for_each_other_to_remove_keys(database: Database) -> None:
    """Some reuse an expired key while others remove it: there is no deadlock, and each creates one."""
    owner = await user(database)
    keys = [str(number) for number in range(20)]
    await add_old_keys(database, owner, keys)
    made = await asyncio.gather(*(create(database, owner, key, desired=DesiredState.STANDBY) for key in keys))
    assert set(made) == await created(database)
    assert (len(set(made)), await count_keys(database)) == (20, 20)
