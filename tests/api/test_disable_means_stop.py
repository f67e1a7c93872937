"""Disabling a user through the API stops the workspaces, even if the API is killed in between."""

import asyncio
from uuid import UUID

import httpx
from sqlalchemy import select

from codehub.db.models import User, Workspace
from codehub.db.session import Database
from codehub.services.disabled_users import stop_workspaces_of_disabled
from codehub.services.requests import RequestContext
from testkit.rows import NOW
from testkit.waiting import until
from tests.api.harness import ApiHarness, Person
from tests.api.process import calling, running_api
from tests.api.workspace_rows import set_columns


async def desired_state(database: Database, workspace_id: str) -> str:
    async with database.transaction() as session:
        found = await session.scalars(
            select(Workspace.desired_state).where(Workspace.id == UUID(workspace_id))
        )
        return found.one()


async def running_workspace(harness: ApiHarness, owner: Person) -> str:
    workspace_id: str = (await owner.create())["id"]
    await set_columns(harness.context.database, workspace_id, phase="RUNNING", desired_state="RUNNING")
    return workspace_id


async def test_a_disabled_users_workspace_is_asked_to_stop_at_once_and_does_not_start(
    harness: ApiHarness,
) -> None:
    harness = harness.with_cheap_passwords()
    root, ada = (await harness.person(admin=True)).client, await harness.person()
    workspace_id = await running_workspace(harness, ada)
    assert (await root.patch(f"/api/v1/admin/users/{ada.user_id}", json={"disabled": True})).is_success
    assert await desired_state(harness.context.database, workspace_id) == "STANDBY"
    path = f"/api/v1/workspaces/{workspace_id}"
    refused = await root.patch(path, json={"desired_state": "RUNNING"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE")
    assert "account is disabled" in refused.json()["error"]["message"]
    assert (await root.patch(f"/api/v1/admin/users/{ada.user_id}", json={"disabled": False})).is_success
    assert await desired_state(harness.context.database, workspace_id) == "STANDBY"


async def test_an_api_that_is_killed_between_disable_and_stop_leaves_the_stop_to_the_sweep(
    harness: ApiHarness, api_environment: dict[str, str]
) -> None:
    harness = harness.with_cheap_passwords()
    database = harness.context.database
    root, ada = await harness.person(admin=True), await harness.person()
    workspace_id = await running_workspace(harness, ada)
    with_token, _ = await harness.token_client(root)
    async with (
        running_api(api_environment) as api,
        calling(api.base_url, Authorization=with_token.headers["authorization"]) as client,
    ):
        async with database.transaction() as session:
            # The API commits the disabling, then waits for this row.
            await session.execute(
                select(Workspace.id).where(Workspace.id == UUID(workspace_id)).with_for_update()
            )
            disabling = asyncio.create_task(
                client.patch(f"/api/v1/admin/users/{ada.user_id}", json={"disabled": True})
            )
            await until(lambda: is_disabled(database, ada), "the user is disabled")
            api.process.kill()
            await api.wait_ended()
        try:
            await disabling
            raise AssertionError("the API answered before it was killed")
        except httpx.TransportError:
            pass
    assert await desired_state(database, workspace_id) == "RUNNING"
    await stop_workspaces_of_disabled(database, context=RequestContext("ttl", harness.context.limits, NOW))
    assert await desired_state(database, workspace_id) == "STANDBY"


async def is_disabled(database: Database, person: Person) -> bool:
    async with database.transaction() as session:
        return await session.scalar(select(User.disabled_at).where(User.id == person.user_id)) is not None
