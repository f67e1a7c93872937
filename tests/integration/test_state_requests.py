"""Requests for a state are accepted, or refused with a reason that the caller can act on."""

import pytest
from sqlalchemy import select

from codehub.db.models import Workspace, WorkspaceEvent
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState, Operation
from codehub.services.errors import InvalidState, OperationInProgress, WorkspaceNotFound
from codehub.services.requests import RequestContext
from codehub.services.workspaces import create_once, request_state
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id
from tests.integration.test_limits import new_workspace


async def add(database: Database, **columns: object) -> WorkspaceId:
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session), **columns)


async def ask(database: Database, workspace_id: WorkspaceId, desired: DesiredState) -> None:
    await request_state(database, workspace_id, desired, context=RequestContext("ann", RunningLimits(), NOW))


async def desired_and_events(database: Database) -> tuple[str, list[tuple[str, str, object]]]:
    async with database.transaction() as session:
        desired = (await session.scalars(select(Workspace.desired_state))).one()
        columns = (WorkspaceEvent.kind, WorkspaceEvent.actor, WorkspaceEvent.detail)
        return desired, [(row[0], row[1], row[2]) for row in await session.execute(select(*columns))]


async def test_request_is_recorded_with_its_actor(database: Database) -> None:
    await ask(database, await add(database, phase="STANDBY", desired_state="STANDBY"), DesiredState.RUNNING)
    event = ("state_requested", "ann", {"from": "STANDBY", "to": "RUNNING"})
    assert await desired_and_events(database) == ("RUNNING", [event])


async def test_request_for_the_current_desired_state_changes_nothing(database: Database) -> None:
    await ask(database, await add(database, desired_state="ARCHIVED"), DesiredState.ARCHIVED)
    assert await desired_and_events(database) == ("ARCHIVED", [])


async def test_new_workspace_is_recorded_with_its_actor(database: Database) -> None:
    async with database.transaction() as session:
        new = new_workspace(await add_user(session), DesiredState.STANDBY)
    await create_once(
        database,
        new,
        idempotency_key=None,
        request_hash=b"",
        context=RequestContext("ann", RunningLimits(), NOW),
    )
    assert await desired_and_events(database) == ("STANDBY", [("created", "ann", {"to": "STANDBY"})])


@pytest.mark.parametrize("desired", [DesiredState.RUNNING, DesiredState.ARCHIVED])
async def test_refusal_during_an_operation_names_it_and_its_start(
    database: Database, desired: DesiredState
) -> None:
    workspace_id = await add(database, operation="STARTING", op_started_at=NOW, desired_state="STANDBY")
    with pytest.raises(OperationInProgress) as refusal:
        await ask(database, workspace_id, desired)
    assert (refusal.value.operation, refusal.value.since) == (Operation.STARTING, NOW)
    assert await desired_and_events(database) == ("STANDBY", [])


async def test_workspace_in_error_refuses_requests(database: Database) -> None:
    workspace_id = await add(database, phase="ERROR", error_reason="Timeout")
    with pytest.raises(InvalidState, match="recover"):
        await ask(database, workspace_id, DesiredState.RUNNING)


async def test_deleted_workspace_is_not_found(database: Database) -> None:
    workspace_id = await add(database, desired_state="DELETED", deleted_at=NOW)
    with pytest.raises(WorkspaceNotFound):
        await ask(database, workspace_id, DesiredState.RUNNING)


async def test_unknown_workspace_is_not_found(database: Database) -> None:
    with pytest.raises(WorkspaceNotFound):
        await ask(database, new_workspace_id(), DesiredState.RUNNING)


async def test_deleted_is_refused_as_a_desired_state(database: Database) -> None:
    workspace_id = await add(database)
    with pytest.raises(ValueError, match="use delete_workspace"):
        await ask(database, workspace_id, DesiredState.DELETED)
