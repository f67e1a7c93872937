"""Live events of a real API process: from the database trigger through the relay and Redis to browsers."""

import asyncio
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from api.live.feed import LiveTiming
from api.live.hub import LiveHub
from api.queries import load_live
from codehub.bootstrap import subscription_of
from codehub.domain.states import Phase
from tests.api.event_harness import harness, metric, program, relaying, until_clients, until_elected
from tests.api.harness import ApiHarness, Person
from tests.api.process import ApiProcess, EventStream, follow
from tests.api.workspace_rows import mark_deleted, set_columns

__all__ = ["harness"]

CLIENTS = 200


async def test_a_stream_begins_with_a_snapshot_of_the_users_workspaces(
    harness: ApiHarness, api: ApiProcess
) -> None:
    ada, bob = await harness.person(), await harness.person()
    created = [await ada.create(name=name) for name in ("a", "b")]
    await bob.create()
    async with program(harness, ada, api) as client, follow(client) as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        assert stream.response.headers["cache-control"] == "no-store"
        snapshot = await stream.next_news()
        assert snapshot.name == "snapshot"
        assert snapshot.data["workspaces"] == created[::-1]


async def test_changes_by_the_api_and_in_the_database_arrive_as_whole_workspaces(
    harness: ApiHarness, api: ApiProcess, relay: None
) -> None:
    ada = await harness.person()
    async with program(harness, ada, api) as client, follow(client) as stream:
        assert (await stream.next_news()).data == {"workspaces": []}
        created = (
            await client.post(ada.workspaces, json={"name": "home", "desired_state": "STANDBY"})
        ).json()
        assert (await stream.next_named("workspace_updated")).data == created
        path = f"{ada.workspaces}/{created['id']}"
        patched = (await client.patch(path, json={"name": "new"})).json()
        assert (await stream.next_named("workspace_updated")).data == patched
        await set_columns(harness.context.database, created["id"], phase=Phase.STANDBY)
        updated = (await stream.next_named("workspace_updated")).data
        assert updated["phase"] == "STANDBY"
        assert updated == (await client.get(path)).json()


async def test_another_users_stream_gets_nothing(harness: ApiHarness, api: ApiProcess, relay: None) -> None:
    ada, bob = await harness.person(), await harness.person()
    async with (
        program(harness, ada, api) as of_ada,
        program(harness, bob, api) as of_bob,
        follow(of_ada) as adas,
        follow(of_bob) as bobs,
    ):
        await adas.next_named("snapshot")
        await bobs.next_named("snapshot")
        secret = await ada.create(name="secret")
        assert (await adas.next_named("workspace_updated")).data["id"] == secret["id"]
        # His own change comes first, although hers was earlier.
        own = await bob.create(name="own")
        event = await bobs.next_news()
        assert (event.name, event.data["id"]) == ("workspace_updated", own["id"])


async def test_a_deleted_workspace_is_an_event_with_its_id(
    harness: ApiHarness, api: ApiProcess, relay: None
) -> None:
    ada = await harness.person()
    created = await ada.create()
    async with program(harness, ada, api) as client, follow(client) as stream:
        await stream.next_named("snapshot")
        await mark_deleted(harness.context.database, created["id"], Phase.DELETED)
        assert (await stream.next_named("workspace_deleted")).data == {"id": created["id"]}


async def test_a_client_that_is_up_to_date_gets_no_second_snapshot(
    harness: ApiHarness, api: ApiProcess, relay: None
) -> None:
    ada = await harness.person()
    created = await ada.create()
    async with program(harness, ada, api) as client:
        async with follow(client) as stream:
            mark = (await stream.next_news()).id
        for name in ("new", "newer"):
            async with follow(client, last_event_id=mark) as stream:
                # Something is sent at once anyway, so that the browser knows that it is connected.
                assert (await stream.next()).name == "heartbeat"
                await client.patch(f"{ada.workspaces}/{created['id']}", json={"name": name})
                # A snapshot would have come first.
                event = await stream.next_news()
                assert (event.name, event.data["name"]) == ("workspace_updated", name)
                mark = event.id


@pytest.mark.parametrize("stale", ["0" * 32, "nonsense", "an older one"])
async def test_a_client_that_is_not_up_to_date_gets_a_snapshot(
    harness: ApiHarness, api: ApiProcess, stale: str
) -> None:
    ada = await harness.person()
    created = await ada.create()
    async with program(harness, ada, api) as client:
        if stale == "an older one":
            async with follow(client) as stream:
                stale = (await stream.next_news()).id or ""
            await set_columns(harness.context.database, created["id"], name="new")
        async with follow(client, last_event_id=stale) as stream:
            assert (await stream.next_news()).name == "snapshot"


async def test_no_change_is_lost_when_one_relay_replaces_another(
    harness: ApiHarness, api: ApiProcess
) -> None:
    ada = await harness.person()
    workspaces = [await ada.create(name="old") for _ in range(3)]
    async with program(harness, ada, api) as client, AsyncExitStack() as second:
        async with relaying(harness):
            await until_elected(harness)
            stream = await second.enter_async_context(follow(client))
            await stream.next_named("snapshot")
        # There is no relay now.
        for each in workspaces:
            await set_columns(harness.context.database, each["id"], name="new")
        await second.enter_async_context(relaying(harness))
        updated = {(await stream.next_named("workspace_updated")).data["id"] for _ in workspaces}
        assert updated == {each["id"] for each in workspaces}


async def test_heartbeats_are_sent_without_any_change(harness: ApiHarness) -> None:
    ada = await harness.person()

    async def load(user_id: UUID, ids: object) -> object:
        return await load_live(harness.context, user_id, None)

    timing = LiveTiming(heartbeat=0.1)
    hub = LiveHub(subscription_of(harness.settings), load, harness.context.board, timing=timing)  # type: ignore[arg-type]
    running = asyncio.create_task(hub.run())
    try:
        async with hub.connect(ada.user_id) as client:
            frames = [await anext(client) for _ in range(3)]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert frames[-1] == b"event: heartbeat\ndata: {}\n\n"


async def test_two_hundred_clients_of_one_process_all_get_a_change(
    harness: ApiHarness, api: ApiProcess, relay: None
) -> None:
    people = [await harness.person() for _ in range(4)]
    async with AsyncExitStack() as stack:
        streams: list[tuple[Person, EventStream]] = []
        for person in people:
            client = await stack.enter_async_context(program(harness, person, api))
            opened = [stack.enter_async_context(follow(client)) for _ in range(CLIENTS // len(people))]
            streams += [(person, each) for each in [await opening for opening in opened]]
        await asyncio.gather(*(stream.next_named("snapshot") for _, stream in streams))
        await until_clients(client, CLIENTS)
        dropped = await metric(client, "live_dropped")
        created = {person.user_id: (await person.create())["id"] for person in people}
        events = await asyncio.gather(*(stream.next_named("workspace_updated") for _, stream in streams))
        updated = [event.data["id"] for event in events]
        assert updated == [created[person.user_id] for person, _ in streams]
        assert await metric(client, "live_dropped") == dropped
    async with program(harness, people[0], api) as client:
        await until_clients(client, 0)
