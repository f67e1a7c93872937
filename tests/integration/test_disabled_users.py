"""Disabling a user means stop, whatever else happens at that moment."""

from itertools import product
from uuid import UUID

import pytest
from sqlalchemy import select, update

from codehub.db.models import User, Workspace
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits, disabled_target
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.services.disabled_users import stop_workspaces_of_disabled
from codehub.services.errors import OwnerDisabled
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from codehub.services.workspaces import create_once, request_state
from testkit.rows import NOW, add_user, add_workspace
from tests.integration.test_limits import new_workspace

CONTEXT = RequestContext("admin", RunningLimits(), NOW)
PHASES = (Phase.PENDING, Phase.ARCHIVED, Phase.STANDBY, Phase.RUNNING)
STATES = [*product(PHASES, (Operation.NONE, Operation.STARTING)), (Phase.ERROR, Operation.NONE)]
WANTED = (DesiredState.RUNNING, DesiredState.STANDBY)
SHALL_RUN = {"phase": "RUNNING", "desired_state": "RUNNING"}


@pytest.fixture
async def disabled(database: Database) -> UUID:
    async with database.transaction() as session:
        user_id = await add_user(session)
        await session.execute(update(User).where(User.id == user_id).values(disabled_at=NOW))
        return user_id


async def desired(database: Database) -> dict[WorkspaceId, str]:
    async with database.transaction() as session:
        rows = await session.execute(select(Workspace.id, Workspace.desired_state))
        return {WorkspaceId(str(row[0])): row[1] for row in rows}


async def test_the_workspaces_of_disabled_users_go_where_the_domain_says(
    database: Database, disabled: UUID
) -> None:
    expected = {}
    async with database.transaction() as session:
        enabled = await add_user(session)
        for owner, (phase, operation), wanted in product((disabled, enabled), STATES, WANTED):
            started_at = None if operation is Operation.NONE else NOW
            error_reason = "Timeout" if phase is Phase.ERROR else None
            state = {"phase": phase, "operation": operation, "op_started_at": started_at}
            added = await add_workspace(
                session, owner, desired_state=wanted, error_reason=error_reason, **state
            )
            target = disabled_target(phase, operation, wanted) if owner == disabled else None
            expected[added] = target or wanted
    asked = await stop_workspaces_of_disabled(database, context=CONTEXT)
    assert await desired(database) == expected
    assert {each.owner_id for each in asked} == {str(disabled)}
    assert await stop_workspaces_of_disabled(database, context=CONTEXT) == []


async def test_an_operation_delays_the_stop_until_it_has_ended(database: Database, disabled: UUID) -> None:
    async with database.transaction() as session:
        busy = await add_workspace(
            session, disabled, **SHALL_RUN, operation=Operation.STARTING, op_started_at=NOW
        )
    assert await stop_workspaces_of_disabled(database, context=CONTEXT, owner_user_id=disabled) == []
    async with database.transaction() as session:
        await session.execute(update(Workspace).values(operation="NONE", op_started_at=None))
    await stop_workspaces_of_disabled(database, context=CONTEXT)
    assert await desired(database) == {busy: "STANDBY"}


async def test_nothing_starts_for_a_disabled_user_and_enabling_starts_nothing(
    database: Database, disabled: UUID
) -> None:
    async with database.transaction() as session:
        stopped = await add_workspace(session, disabled, phase="STANDBY", desired_state="STANDBY")
        failed = await add_workspace(
            session, disabled, phase="ERROR", desired_state="RUNNING", error_reason="Timeout"
        )
    with pytest.raises(OwnerDisabled):
        await request_state(database, stopped, DesiredState.RUNNING, context=CONTEXT)
    with pytest.raises(OwnerDisabled):
        await request_recovery(database, failed, RecoverChoice.RETRY, context=CONTEXT)
    with pytest.raises(OwnerDisabled):
        await create_once(
            database,
            new_workspace(disabled, DesiredState.RUNNING),
            idempotency_key=None,
            request_hash=b"",
            context=CONTEXT,
        )
    async with database.transaction() as session:
        await session.execute(update(User).values(disabled_at=None))
    await stop_workspaces_of_disabled(database, context=CONTEXT)
    assert (await desired(database))[stopped] == "STANDBY"
    await request_state(database, stopped, DesiredState.RUNNING, context=CONTEXT)
