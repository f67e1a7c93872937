"""The running limits hold exactly, also for concurrent requests."""

import asyncio
from collections import Counter
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.db.session import Database
from codehub.db.workspaces import Metadata, NewWorkspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import LimitScope, RunningLimits
from codehub.domain.states import DesiredState
from codehub.services.errors import LimitExceeded
from codehub.services.requests import RequestContext
from codehub.services.workspaces import create_once, request_state
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

USERS = 20
READY = {"infra.container_ready": {"status": "True", "reason": "Ready"}}
GONE = {"infra.container_ready": {"status": "False", "reason": "Absent"}}
LIMITS = RunningLimits(per_user=2, total=25)


def new_workspace(owner: UUID, desired: DesiredState = DesiredState.RUNNING) -> NewWorkspace:
    return NewWorkspace(
        workspace_id=new_workspace_id(),
        owner_user_id=owner,
        metadata=Metadata(name="home"),
        image_ref="image",
        instance_backend="local",
        storage_backend="local-dir",
        home_store_key="key",
        desired_state=desired,
    )


async def create(database: Database, owner: UUID, limits: RunningLimits = LIMITS) -> WorkspaceId:
    new = new_workspace(owner)
    await create_once(
        database, new, idempotency_key=None, request_hash=b"", context=RequestContext("test", limits, NOW)
    )
    return new.workspace_id


async def start(database: Database, workspace_id: WorkspaceId, limits: RunningLimits = LIMITS) -> None:
    await request_state(
        database, workspace_id, DesiredState.RUNNING, context=RequestContext("test", limits, NOW)
    )


async def count_by_owner(database: Database) -> Counter[UUID]:
    statement = (
        select(Workspace.owner_user_id, func.count())
        .where(text(predicates.COUNTS_AS_RUNNING))
        .group_by(Workspace.owner_user_id)
    )
    async with database.transaction() as session:
        return Counter({row[0]: row[1] for row in await session.execute(statement)})


async def test_two_hundred_concurrent_requests_never_exceed_the_limits(database: Database) -> None:
    async with database.transaction() as session:
        users = [await add_user(session) for _ in range(USERS)]
        parked = [await add_workspace(session, user) for user in users for _ in range(5)]
    starts = (start(database, workspace_id) for workspace_id in parked)
    creations = (create(database, user) for user in users for _ in range(5))
    results = asyncio.gather(*starts, *creations, return_exceptions=True)
    while not results.done():
        running = await count_by_owner(database)
        assert running.total() <= LIMITS.total
        assert max(running.values(), default=0) <= LIMITS.per_user
    refusals = [result for result in await results if isinstance(result, BaseException)]
    assert {type(refusal) for refusal in refusals} == {LimitExceeded}
    assert len(refusals) == 200 - LIMITS.total
    assert (await count_by_owner(database)).total() == LIMITS.total


async def test_refusal_lists_the_workspaces_of_the_owner(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
    own = {await create(database, owner), await create(database, owner)}
    with pytest.raises(LimitExceeded) as refusal:
        await create(database, owner)
    assert refusal.value.scope is LimitScope.USER
    assert {running.workspace_id for running in refusal.value.running} == own


async def test_refusal_by_the_global_limit_does_not_show_workspaces_of_others(database: Database) -> None:
    async with database.transaction() as session:
        owner, other = await add_user(session), await add_user(session)
    await create(database, other)
    with pytest.raises(LimitExceeded) as refusal:
        await create(database, owner, RunningLimits(per_user=2, total=1))
    assert (refusal.value.scope, refusal.value.running) == (LimitScope.GLOBAL, ())


async def test_workspace_that_is_still_running_may_be_requested_again(database: Database) -> None:
    async with database.transaction() as session:
        workspace_id = await add_workspace(
            session, await add_user(session), phase="RUNNING", desired_state="STANDBY"
        )
    await start(database, workspace_id, RunningLimits(per_user=1, total=1))


async def test_a_container_keeps_its_slot_until_its_deletion_has_removed_it(database: Database) -> None:
    limits = RunningLimits(per_user=1, total=1)
    async with database.transaction() as session:
        owner = await add_user(session)
        workspace_id = await add_workspace(
            session, owner, phase="DELETING", desired_state="DELETED", deleted_at=NOW, conditions=READY
        )
    with pytest.raises(LimitExceeded) as refusal:
        await create(database, owner, limits)
    assert [running.workspace_id for running in refusal.value.running] == [workspace_id]
    async with database.transaction() as session:
        this_one = update(Workspace).where(Workspace.id == UUID(workspace_id))
        await session.execute(this_one.values(conditions=GONE))
    await create(database, owner, limits)


async def test_a_broken_workspace_keeps_its_slot_while_its_container_runs(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        await add_workspace(
            session,
            owner,
            phase="ERROR",
            desired_state="STANDBY",
            error_reason="ContainerWithoutVolume",
            conditions=READY,
        )
    with pytest.raises(LimitExceeded):
        await create(database, owner, RunningLimits(per_user=1, total=1))


async def test_slot_is_free_when_the_workspace_neither_runs_nor_is_requested_to_run(
    database: Database,
) -> None:
    limits = RunningLimits(per_user=1, total=1)
    async with database.transaction() as session:
        owner = await add_user(session)
    first = await create(database, owner, limits)
    await request_state(database, first, DesiredState.ARCHIVED, context=RequestContext("test", limits, NOW))
    await create(database, owner, limits)
