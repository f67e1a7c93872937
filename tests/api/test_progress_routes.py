"""Progress and activity over the API and on event streams."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from temporalio.client import Client

from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.progress_board import RedisProgressBoard
from codehub.db.usage import BUCKET, bucket_of, record_usage
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation
from codehub.ports import Progress
from testkit.network_faults import FaultRelay
from testkit.waiting import until
from tests.api.event_harness import harness, program
from tests.api.harness import ApiHarness, Person, running_worker
from tests.api.process import ApiProcess, EventStream, follow, running_api
from tests.api.workspace_rows import begin_operation, set_columns

__all__ = ["harness"]

HALFWAY = Progress("upload", 21, 42)
AGES = 600.0


@pytest.fixture
async def board(shared_environment: dict[str, str]) -> AsyncIterator[RedisProgressBoard]:
    """The progress board of the API, with entries that do not expire during a test."""
    async with create_client(shared_environment["CODEHUB_REDIS_URL"]) as client:
        yield RedisProgressBoard(client, lifetime_seconds=AGES)


async def read(person: Person, workspace_id: str, what: str) -> dict[str, Any]:
    response = await person.client.get(f"{person.workspaces}/{workspace_id}/{what}")
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


async def end_operation(harness: ApiHarness, workspace_id: str) -> None:
    await set_columns(harness.context.database, workspace_id, operation=Operation.NONE, op_started_at=None)


async def next_step(stream: EventStream) -> Any:  # noqa: ANN401
    return (await stream.next_named("workspace_progress")).data["step"]


async def test_progress_is_that_of_the_running_operation(
    harness: ApiHarness, board: RedisProgressBoard
) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await board.post(WorkspaceId(workspace_id), HALFWAY)
    # A leftover: no operation runs.
    assert await read(ada, workspace_id, "progress") == {"progress": None}
    await begin_operation(harness.context.database, workspace_id, Operation.ARCHIVING)
    progress = (await read(ada, workspace_id, "progress"))["progress"]
    assert abs(datetime.fromisoformat(progress.pop("at")) - harness.context.now()) < timedelta(minutes=1)
    assert progress == {
        "id": workspace_id,
        "operation": "ARCHIVING",
        "step": "upload",
        "done": 21,
        "total": 42,
        "unit": "bytes",
    }


async def test_an_operation_without_a_running_step_waits_for_its_turn(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await begin_operation(harness.context.database, workspace_id, Operation.ARCHIVING)
    progress = (await read(ada, workspace_id, "progress"))["progress"]
    assert (progress["operation"], progress["step"]) == ("ARCHIVING", "waiting for its turn")


async def test_activity_covers_the_last_day(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    now = harness.context.now()
    present = bucket_of(now)
    ages = (0, 1, 95, 97)
    async with harness.context.database.transaction() as session:
        for age in ages:
            await record_usage(session, {WorkspaceId(workspace_id): now - BUCKET * age})
    activity = await read(ada, workspace_id, "activity")
    since = datetime.fromisoformat(activity["since"])
    used = [datetime.fromisoformat(each) for each in activity["used"]]
    # The next quarter hour may have begun meanwhile.
    expected = [present - BUCKET * age for age in reversed(ages) if present - BUCKET * age >= since]
    assert since in {present - BUCKET * 95, present - BUCKET * 94}
    assert (activity["bucket_seconds"], used) == (900, expected)
    assert present - BUCKET * 97 not in used


async def test_a_stream_sends_progress_when_it_changes(
    harness: ApiHarness, board: RedisProgressBoard, served: ApiProcess, relay: None
) -> None:
    ada, bob = await harness.person(), await harness.person()
    workspace_id = (await ada.create())["id"]
    async with (
        program(harness, ada, served) as of_ada,
        program(harness, bob, served) as of_bob,
        follow(of_ada) as adas,
        follow(of_bob) as bobs,
    ):
        mark = (await adas.next_named("snapshot")).id
        await bobs.next_named("snapshot")
        await board.post(WorkspaceId(workspace_id), HALFWAY)
        await begin_operation(harness.context.database, workspace_id, Operation.ARCHIVING)
        begun = await adas.next_named("workspace_updated")
        event = await adas.next_named("workspace_progress")
        assert (event.id, begun.id != mark) == (None, True)
        shown = (await read(ada, workspace_id, "progress"))["progress"]
        assert {**event.data, "at": None} == {**shown, "at": None}
        await board.post(WorkspaceId(workspace_id), Progress("verify"))
        assert await next_step(adas) == "verify"
        # The next event for him is his own.
        own = await bob.create()
        assert (await bobs.next_news()).data["id"] == own["id"]
        # The last event id is still that of the last change.
        async with follow(of_ada, last_event_id=begun.id) as again:
            assert (await again.next()).name == "heartbeat"
            assert await next_step(again) == "verify"
        await end_operation(harness, workspace_id)
        ended = await adas.next_named("workspace_updated")
        assert ended.data["operation"] == "NONE"


async def test_the_progress_of_a_real_operation_can_be_followed_live(
    harness: ApiHarness, served: ApiProcess, relay: None, temporal_client: Client
) -> None:
    ada = await harness.person()
    async with (
        running_worker(harness) as world,
        program(harness, ada, served) as client,
        follow(client) as stream,
    ):
        gate = world.gates["jobs.archive"] = asyncio.Event()
        workspace_id = (await ada.create(desired_state="STANDBY"))["id"]

        async def arrived() -> bool:
            found = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()
            return (found["phase"], found["operation"]) == ("STANDBY", "NONE")

        await until(arrived, "it is in STANDBY")
        await ada.client.patch(f"{ada.workspaces}/{workspace_id}", json={"desired_state": "ARCHIVED"})
        while await next_step(stream) != "upload":
            pass
        gate.set()


async def test_without_redis_progress_is_unknown_and_everything_else_works(
    harness: ApiHarness, board: RedisProgressBoard, shared_environment: dict[str, str]
) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await begin_operation(harness.context.database, workspace_id, Operation.ARCHIVING)
    url = shared_environment["CODEHUB_REDIS_URL"]
    async with FaultRelay.to(url) as relay:
        environment = {**shared_environment, "CODEHUB_REDIS_URL": relay.rewrite(url)}
        async with (
            running_api(environment) as api,
            program(harness, ada, api) as client,
            follow(client) as stream,
        ):
            await stream.next_named("snapshot")
            await board.post(WorkspaceId(workspace_id), HALFWAY)
            assert await next_step(stream) == "upload"
            await relay.close()
            assert await next_step(stream) is None
            response = await client.get(f"{ada.workspaces}/{workspace_id}/progress")
            assert (response.status_code, response.json()) == (200, {"progress": None})
            await board.post(WorkspaceId(workspace_id), Progress("verify"))
            await relay.open()
            assert await next_step(stream) == "verify"
