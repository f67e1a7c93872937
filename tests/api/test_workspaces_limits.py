"""Running limits over the API: a refusal lists the running workspaces."""

from sqlalchemy import func, select

from codehub.db.models import Workspace
from tests.api.harness import ApiHarness, open_harness
from tests.api.workspace_requests import changed, error_of, harness, patch

__all__ = ["harness"]


async def test_over_the_user_limit_the_running_workspaces_are_listed(harness: ApiHarness) -> None:
    ada, bob = await harness.person(), await harness.person()
    running = [await ada.create(name=name, desired_state="RUNNING") for name in ("a", "b")]
    await bob.create(desired_state="RUNNING")
    response = await ada.client.post(ada.workspaces, json={"name": "third"})
    problem = await error_of(response, 429, "LIMIT_EXCEEDED")
    assert problem["scope"] == "user"
    assert problem["running"] == [
        {"id": each["id"], "name": each["name"], "phase": "PENDING", "desired_state": "RUNNING"}
        for each in running
    ]
    third = await ada.create()
    await error_of(await patch(ada, third["id"], {"desired_state": "RUNNING"}), 429, "LIMIT_EXCEEDED")
    await changed(ada, running[0]["id"], desired_state="STANDBY")
    assert (await changed(ada, third["id"], desired_state="RUNNING"))["desired_state"] == "RUNNING"


async def test_over_the_global_limit_workspaces_of_others_are_not_listed(
    api_environment: dict[str, str],
) -> None:
    async with open_harness({**api_environment, "CODEHUB_LIMITS_MAX_RUNNING_GLOBAL": "2"}) as harness:
        ada, bob = await harness.person(), await harness.person()
        own = await ada.create(desired_state="RUNNING")
        await bob.create(desired_state="RUNNING")
        response = await ada.client.post(ada.workspaces, json={"name": "third"})
        problem = await error_of(response, 429, "LIMIT_EXCEEDED")
        assert problem["scope"] == "global"
        assert [each["id"] for each in problem["running"]] == [own["id"]]
        async with harness.context.database.transaction() as session:
            assert await session.scalar(select(func.count()).select_from(Workspace)) == 2


async def test_a_start_by_an_administrator_takes_a_slot_of_the_owner(harness: ApiHarness) -> None:
    ada, root = await harness.person(), await harness.person(admin=True)
    created = await ada.create()
    for _ in range(2):
        await root.create(desired_state="RUNNING")
    # The administrator has no free slot, but the owner has.
    assert (await changed(root, created["id"], desired_state="RUNNING"))["owner"]["id"] == str(ada.user_id)
