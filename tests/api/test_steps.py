"""The steps of an operation over the API, as Temporal keeps them."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason, Operation
from testkit.fake_world import FakeWorld
from testkit.network_faults import FaultRelay
from testkit.waiting import until
from tests.api.event_harness import harness
from tests.api.harness import ApiHarness, Person, open_harness
from tests.api.workspace_rows import LONG_AGO, claim

__all__ = ["harness"]

BROKEN = Transient(ErrorReason.ACTION_FAILED, "The disk is on fire.")


async def operations(person: Person, workspace_id: str) -> list[dict[str, Any]]:
    response = await person.client.get(f"{person.workspaces}/{workspace_id}/operations")
    items: list[dict[str, Any]] = response.json()["items"]
    return items


async def read_steps(person: Person, workspace_id: str, operation_id: int) -> dict[str, Any]:
    path = f"{person.workspaces}/{workspace_id}/operations/{operation_id}/steps"
    response = await person.client.get(path)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


async def until_steps(person: Person, workspace_id: str, operation_id: int, count: int) -> Any:  # noqa: ANN401
    """Wait for this many steps: Temporal's list of workflows may lag behind."""
    found: list[dict[str, Any]] = []

    async def so_many() -> bool:
        found[:] = (await read_steps(person, workspace_id, operation_id))["items"]
        return len(found) >= count

    await until(so_many, f"{count} steps")
    return found


async def reach(person: Person, workspace_id: str, phase: str) -> None:
    await person.client.patch(f"{person.workspaces}/{workspace_id}", json={"desired_state": phase})

    async def arrived() -> bool:
        found = (await person.client.get(f"{person.workspaces}/{workspace_id}")).json()
        return (found["phase"], found["operation"]) == (phase, "NONE")

    await until(arrived, f"it is in {phase}")


async def new_workspace(person: Person) -> str:
    workspace_id = str((await person.create())["id"])
    await reach(person, workspace_id, "STANDBY")
    return workspace_id


def moments(step: dict[str, Any]) -> list[datetime]:
    return [datetime.fromisoformat(step[name]) for name in ("scheduled_at", "started_at", "ended_at")]


async def test_steps_have_names_times_and_results(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    workspace_id = await new_workspace(ada)
    await reach(ada, workspace_id, "ARCHIVED")
    archiving, provisioning = await operations(ada, workspace_id)
    steps = await until_steps(ada, workspace_id, archiving["id"], 3)
    assert [step["name"] for step in steps] == [
        "upload_archive",
        "commit_archive",
        "remove_archived_volume",
    ]
    for step in steps:
        outcome = step["operation_attempt"], step["attempts"], step["result"], step["error"]
        assert outcome == (1, 1, "COMPLETED", None)
    # Workers and server share a clock here, but report it with different precision.
    times = [moment for step in steps for moment in moments(step)]
    claimed, ended = (datetime.fromisoformat(archiving[name]) for name in ("started_at", "ended_at"))
    assert claimed - timedelta(seconds=1) < min(times)
    assert max(times) < ended + timedelta(seconds=1)
    assert all(moments(step) == sorted(moments(step)) for step in steps)
    [earlier] = await until_steps(ada, workspace_id, provisioning["id"], 1)
    assert earlier["name"] == "provision_volume"


async def test_each_operation_has_its_own_steps(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    workspace_id = await new_workspace(ada)
    for phase in ("RUNNING", "STANDBY", "RUNNING"):
        await reach(ada, workspace_id, phase)
    found = await operations(ada, workspace_id)
    second, first = (each for each in found if each["operation"] == "STARTING")
    [one] = await until_steps(ada, workspace_id, first["id"], 1)
    [other] = await until_steps(ada, workspace_id, second["id"], 1)
    assert one["name"] == other["name"] == "start_instance"
    assert one["started_at"] < other["started_at"]


async def test_failed_attempts_have_an_error_and_the_time_until_the_retry(
    harness: ApiHarness, world: FakeWorld
) -> None:
    ada = await harness.person()
    workspace_id = await new_workspace(ada)
    world.failures["instances.start"].append(BROKEN)
    await reach(ada, workspace_id, "RUNNING")
    [starting, *_] = await operations(ada, workspace_id)
    failed, done = await until_steps(ada, workspace_id, starting["id"], 2)
    assert (failed["operation_attempt"], failed["result"]) == (1, "FAILED")
    assert failed["error"] == "The disk is on fire."
    assert (done["operation_attempt"], done["result"], done["error"]) == (2, "COMPLETED", None)
    assert starting["attempts"] == 2
    assert failed["ended_at"] < done["scheduled_at"]


async def test_a_running_step_is_listed_as_running(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    workspace_id = await new_workspace(ada)
    gate = world.gates["jobs.archive"] = asyncio.Event()
    await ada.client.patch(f"{ada.workspaces}/{workspace_id}", json={"desired_state": "ARCHIVED"})

    async def claimed() -> bool:
        return [each["operation"] for each in await operations(ada, workspace_id)][:1] == ["ARCHIVING"]

    await until(claimed, "ARCHIVING is claimed")
    [archiving, *_] = await operations(ada, workspace_id)

    async def started() -> bool:
        items = (await read_steps(ada, workspace_id, archiving["id"]))["items"]
        return bool(items) and items[0]["started_at"] is not None

    await until(started, "the upload has started")
    [step] = (await read_steps(ada, workspace_id, archiving["id"]))["items"]
    assert (step["name"], step["result"], step["ended_at"]) == ("upload_archive", "RUNNING", None)
    gate.set()
    await reach(ada, workspace_id, "ARCHIVED")
    assert len(await until_steps(ada, workspace_id, archiving["id"], 3)) == 3


async def test_an_operation_that_temporal_has_forgotten_has_no_steps_but_a_hint(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    database = harness.context.database
    forgotten = await claim(database, workspace_id, Operation.PROVISIONING)
    running = await claim(database, workspace_id, Operation.STARTING, LONG_AGO + timedelta(seconds=1))
    document = await read_steps(ada, workspace_id, forgotten)
    assert document["items"] == []
    assert "Temporal no longer has the steps" in document["hint"]
    assert await read_steps(ada, workspace_id, running) == {"items": [], "hint": "No step has begun yet."}


async def test_operations_of_other_workspaces_are_not_found(harness: ApiHarness) -> None:
    ada = await harness.person()
    own, other = [(await ada.create())["id"] for _ in range(2)]
    operation_id = await claim(harness.context.database, other, Operation.STARTING)
    events = (await ada.client.get(f"{ada.workspaces}/{own}/events")).json()["items"]
    for wrong, status in ((operation_id, 404), (events[0]["id"], 404), (0, 400), ("x", 400), (2**63, 400)):
        response = await ada.client.get(f"{ada.workspaces}/{own}/operations/{wrong}/steps")
        assert response.status_code == status, response.text


async def test_without_temporal_steps_are_unavailable_for_now(
    shared_environment: dict[str, str], harness: ApiHarness
) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    operation_id = await claim(harness.context.database, workspace_id, Operation.STARTING)
    path = f"{ada.workspaces}/{workspace_id}/operations/{operation_id}/steps"
    async with FaultRelay.to(shared_environment["CODEHUB_TEMPORAL_ADDRESS"]) as relay:
        environment = {**shared_environment, "CODEHUB_TEMPORAL_ADDRESS": relay.address}
        async with open_harness(environment) as cut_off:
            client, _ = await cut_off.token_client(ada)
            await relay.close()
            response = await client.get(path)
            assert (response.status_code, response.json()["error"]["code"]) == (503, "DEPENDENCY_UNAVAILABLE")
            assert "retry-after" in response.headers
            await relay.open()

            async def answered() -> bool:
                return (await client.get(path)).status_code == 200

            await until(answered, "Temporal is available again")
