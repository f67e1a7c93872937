"""Live events of a real API process: from the trigger over the relay and Redis to browsers."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text, update

from api.live import LiveHub, LiveTiming
from api.wiring import load_live
from codehub.bootstrap import database_url_of, open_bus, subscription_of
from codehub.db.models import ApiToken, Session, User
from codehub.domain.states import Phase
from tests.api.behind import mark_deleted, set_columns
from tests.api.bench import ApiBench, Person
from tests.api.process import ApiProcess, EventStream, calling, follow, running_api
from tests.api.shared import served, shared_bench, shared_environment
from tests.waiting import until
from worker.relay import RELAY_LOCK, EventRelay, RelayTiming

__all__ = ["served", "shared_bench", "shared_environment"]

QUICK_RELAY = RelayTiming(election=0.05, first_delay=0.05)
CLIENTS = 200
# With a window this small little is on its way before the server notices that nobody reads.
SMALL_WINDOW = 4096
# Three bytes each on the wire.
LONG_MEMO = "\u6f22" * 65_000
MOST_CHANGES = 300


@pytest.fixture
def bench(shared_bench: ApiBench) -> ApiBench:
    return shared_bench


@pytest.fixture
def api(served: ApiProcess) -> ApiProcess:
    """One process for all tests that do not end it: each has people of its own."""
    return served


@pytest.fixture
async def ending_api(shared_environment: dict[str, str]) -> AsyncIterator[ApiProcess]:
    """A process of the test's own."""
    async with running_api(shared_environment) as process:
        yield process


@pytest.fixture
async def impatient_api(shared_environment: dict[str, str]) -> AsyncIterator[ApiProcess]:
    """One with little patience for those who do not let go."""
    async with running_api({**shared_environment, "CODEHUB_API_SHUTDOWN_GRACE_SECONDS": "1"}) as process:
        yield process


@pytest.fixture
async def relay(bench: ApiBench) -> AsyncIterator[None]:
    async with relaying(bench):
        yield


@asynccontextmanager
async def relaying(bench: ApiBench) -> AsyncIterator[None]:
    """A relay that is elected as soon as there is no other."""
    async with open_bus(bench.settings) as bus:
        task = asyncio.create_task(EventRelay(database_url_of(bench.settings), bus, QUICK_RELAY).run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until_elected(bench: ApiBench) -> None:
    # The lock's key is 64 bits wide: the catalogue shows it in two halves.
    query = text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
        "AND ((classid::bigint << 32) | objid::bigint) = :lock "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )

    async def elected() -> bool:
        async with bench.context.database.transaction() as session:
            return bool(await session.scalar(query, {"lock": RELAY_LOCK}))

    await until(elected, "a relay is elected")


@asynccontextmanager
async def program(bench: ApiBench, person: Person, api: ApiProcess) -> AsyncIterator[httpx.AsyncClient]:
    """A program of this person with a token of its own."""
    with_token, _ = await bench.token_client(person)
    async with calling(api.base_url, authorization=with_token.headers["authorization"]) as client:
        yield client


@asynccontextmanager
async def browser(person: Person, api: ApiProcess) -> AsyncIterator[httpx.AsyncClient]:
    """A browser with this person's session."""
    async with calling(api.base_url, **{"x-csrf-token": person.client.headers["x-csrf-token"]}) as client:
        client.cookies.update(dict(person.client.cookies))
        yield client


async def metric(client: httpx.AsyncClient, name: str) -> float:
    lines = (await client.get("/metrics")).text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"codehub_{name} "))


async def until_clients(client: httpx.AsyncClient, count: int) -> None:
    """Those of earlier tests have hung up, but the process may not have heard of it yet."""

    async def so_many() -> bool:
        return await metric(client, "live_clients") == count

    await until(so_many, f"{count} streams are open")


async def test_whoever_comes_gets_a_snapshot_of_their_own(bench: ApiBench, api: ApiProcess) -> None:
    ada, bob = await bench.person(), await bench.person()
    created = [await ada.create(name=name) for name in ("a", "b")]
    await bob.create()
    async with program(bench, ada, api) as client, follow(client) as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        assert stream.response.headers["cache-control"] == "no-store"
        snapshot = await stream.next_news()
        assert snapshot.name == "snapshot"
        assert snapshot.data["workspaces"] == created[::-1]


async def test_changes_of_the_api_and_of_the_database_arrive_whole(
    bench: ApiBench, api: ApiProcess, relay: None
) -> None:
    ada = await bench.person()
    async with program(bench, ada, api) as client, follow(client) as stream:
        assert (await stream.next_news()).data == {"workspaces": []}
        created = (
            await client.post(ada.workspaces, json={"name": "home", "desired_state": "STANDBY"})
        ).json()
        assert (await stream.next_named("workspace_updated")).data == created
        path = f"{ada.workspaces}/{created['id']}"
        patched = (await client.patch(path, json={"name": "new"})).json()
        assert (await stream.next_named("workspace_updated")).data == patched
        await set_columns(bench.context.database, created["id"], phase=Phase.STANDBY)
        updated = (await stream.next_named("workspace_updated")).data
        assert updated["phase"] == "STANDBY"
        assert updated == (await client.get(path)).json()


async def test_another_users_stream_hears_nothing(bench: ApiBench, api: ApiProcess, relay: None) -> None:
    ada, bob = await bench.person(), await bench.person()
    async with (
        program(bench, ada, api) as of_ada,
        program(bench, bob, api) as of_bob,
        follow(of_ada) as adas,
        follow(of_bob) as bobs,
    ):
        await adas.next_named("snapshot")
        await bobs.next_named("snapshot")
        secret = await ada.create(name="secret")
        assert (await adas.next_named("workspace_updated")).data["id"] == secret["id"]
        # What comes first is his own, although hers was earlier.
        own = await bob.create(name="own")
        event = await bobs.next_news()
        assert (event.name, event.data["id"]) == ("workspace_updated", own["id"])


async def test_a_deleted_workspace_is_told_by_its_id(bench: ApiBench, api: ApiProcess, relay: None) -> None:
    ada = await bench.person()
    created = await ada.create()
    async with program(bench, ada, api) as client, follow(client) as stream:
        await stream.next_named("snapshot")
        await mark_deleted(bench.context.database, created["id"], Phase.DELETED)
        assert (await stream.next_named("workspace_deleted")).data == {"id": created["id"]}


async def test_who_knows_the_present_gets_no_second_snapshot(
    bench: ApiBench, api: ApiProcess, relay: None
) -> None:
    ada = await bench.person()
    created = await ada.create()
    async with program(bench, ada, api) as client:
        async with follow(client) as stream:
            mark = (await stream.next_news()).id
        for name in ("new", "newer"):
            async with follow(client, last_event_id=mark) as stream:
                # Something comes at once all the same: a browser then knows that it is connected.
                assert (await stream.next()).name == "heartbeat"
                await client.patch(f"{ada.workspaces}/{created['id']}", json={"name": name})
                # A snapshot would have come before it.
                event = await stream.next_news()
                assert (event.name, event.data["name"]) == ("workspace_updated", name)
                mark = event.id


@pytest.mark.parametrize("stale", ["0" * 32, "nonsense", "an older one"])
async def test_who_knows_something_else_gets_a_snapshot(bench: ApiBench, api: ApiProcess, stale: str) -> None:
    ada = await bench.person()
    created = await ada.create()
    async with program(bench, ada, api) as client:
        if stale == "an older one":
            async with follow(client) as stream:
                stale = (await stream.next_news()).id or ""
            await set_columns(bench.context.database, created["id"], name="new")
        async with follow(client, last_event_id=stale) as stream:
            assert (await stream.next_news()).name == "snapshot"


async def test_nothing_is_missed_while_one_relay_follows_another(bench: ApiBench, api: ApiProcess) -> None:
    ada = await bench.person()
    workspaces = [await ada.create(name="old") for _ in range(3)]
    async with program(bench, ada, api) as client, AsyncExitStack() as second:
        async with relaying(bench):
            await until_elected(bench)
            stream = await second.enter_async_context(follow(client))
            await stream.next_named("snapshot")
        # Nobody relays now.
        for each in workspaces:
            await set_columns(bench.context.database, each["id"], name="new")
        await second.enter_async_context(relaying(bench))
        told = {(await stream.next_named("workspace_updated")).data["id"] for _ in workspaces}
        assert told == {each["id"] for each in workspaces}


async def test_heartbeats_come_without_any_change(bench: ApiBench) -> None:
    ada = await bench.person()

    async def load(user_id: UUID, ids: object) -> object:
        return await load_live(bench.context, user_id, None)

    hub = LiveHub(subscription_of(bench.settings), load, timing=LiveTiming(heartbeat=0.1))  # type: ignore[arg-type]
    running = asyncio.create_task(hub.run())
    try:
        async with hub.connect(ada.user_id) as client:
            frames = [await anext(client) for _ in range(3)]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert frames[-1] == b"event: heartbeat\ndata: {}\n\n"


async def test_signing_out_ends_the_streams_of_that_session_only(bench: ApiBench, api: ApiProcess) -> None:
    ada = await bench.person()
    async with (
        browser(ada, api) as client,
        program(bench, ada, api) as other,
        follow(client) as stream,
        follow(other) as stays,
    ):
        await stream.next_named("snapshot")
        await stays.next_named("snapshot")
        assert (await client.post("/api/v1/logout")).status_code == 204
        await stream.until_end()
        await until_clients(client, 1)


async def test_a_revoked_token_ends_its_streams(bench: ApiBench, api: ApiProcess) -> None:
    ada = await bench.person()
    with_token, token_id = await bench.token_client(ada)
    async with (
        browser(ada, api) as client,
        calling(api.base_url, authorization=with_token.headers["authorization"]) as theirs,
        follow(theirs) as stream,
    ):
        await stream.next_named("snapshot")
        assert (await client.delete(f"/api/v1/tokens/{token_id}")).status_code == 204
        await stream.until_end()
        assert (await theirs.get("/api/v1/events")).status_code == 401


async def test_disabling_a_user_ends_their_streams(bench: ApiBench, api: ApiProcess) -> None:
    ada, root = await bench.person(), await bench.person(admin=True)
    async with browser(ada, api) as client, browser(root, api) as admin, follow(client) as stream:
        await stream.next_named("snapshot")
        answer = await admin.patch(f"/api/v1/admin/users/{ada.user_id}", json={"disabled": True})
        assert answer.status_code == 200
        await stream.until_end()


async def test_what_is_revoked_in_the_database_ends_streams_too(bench: ApiBench, api: ApiProcess) -> None:
    people = {how: await bench.person() for how in ("session", "token", "user", "expiry")}
    ids = {how: person.user_id for how, person in people.items()}
    now = bench.context.now()
    revocations = [
        update(Session).where(Session.user_id == ids["session"]).values(revoked_at=now),
        update(ApiToken).where(ApiToken.user_id == ids["token"]).values(revoked_at=now),
        update(User).where(User.id == ids["user"]).values(disabled_at=now),
        update(Session).where(Session.user_id == ids["expiry"]).values(expires_at=now),
    ]
    bob = await bench.person()
    async with AsyncExitStack() as stack:
        streams = []
        for how, person in people.items():
            opened = program(bench, person, api) if how == "token" else browser(person, api)
            streams.append(await stack.enter_async_context(follow(await stack.enter_async_context(opened))))
        other = await stack.enter_async_context(browser(bob, api))
        stays = await stack.enter_async_context(follow(other))
        for stream in (*streams, stays):
            await stream.next_named("snapshot")
        async with bench.context.database.transaction() as session:
            for revocation in revocations:
                await session.execute(revocation)
        for stream in streams:
            await stream.until_end()
        await until_clients(other, 1)


async def test_who_does_not_read_is_dropped_and_holds_up_nobody(
    bench: ApiBench, api: ApiProcess, relay: None
) -> None:
    ada = await bench.person()
    created = await ada.create()
    async with program(bench, ada, api) as client, follow(client) as stream:
        await stream.next_named("snapshot")
        dropped = await metric(client, "live_dropped")
        with silent_reader(api, client.headers["authorization"]):
            await until_clients(client, 2)
            for number in range(MOST_CHANGES):
                name = f"change {number}"
                await set_columns(bench.context.database, created["id"], memo=LONG_MEMO, name=name)
                assert (await stream.next_named("workspace_updated")).data["name"] == name
                if await metric(client, "live_dropped") > dropped:
                    break
            assert await metric(client, "live_dropped") == dropped + 1
            # It is forgotten although it never reads.
            await until_clients(client, 1)
        await set_columns(bench.context.database, created["id"], name="after")
        assert (await stream.next_named("workspace_updated")).data["name"] == "after"


def silent_reader(api: ApiProcess, authorization: str) -> socket.socket:
    """Somebody who asks for events and then reads nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
    connection.connect(("127.0.0.1", api.port))
    request = f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {authorization}\r\n\r\n"
    connection.sendall(request.encode())
    return connection


async def test_an_api_that_stops_ends_its_streams_and_exits_well(
    bench: ApiBench, ending_api: ApiProcess, relay: None
) -> None:
    ada = await bench.person()
    async with program(bench, ada, ending_api) as client, follow(client) as first, follow(client) as second:
        for stream in (first, second):
            await stream.next_named("snapshot")
        ending_api.stop()
        # A stream that is cut off instead would raise.
        rest = [*await first.until_end(), *await second.until_end()]
        assert {event.name for event in rest} <= {"heartbeat"}
    assert await ending_api.wait_ended() == 0
    log = ending_api.log.read_text()
    assert "stopped" in log
    assert "graceful shutdown exceeded" not in log
    assert "Traceback" not in log


async def test_an_api_that_stops_does_not_wait_for_somebody_who_never_reads(
    bench: ApiBench, impatient_api: ApiProcess, relay: None
) -> None:
    ada = await bench.person()
    created = await ada.create(memo=LONG_MEMO)
    async with program(bench, ada, impatient_api) as client, follow(client) as stream:
        await stream.next_named("snapshot")
        with silent_reader(impatient_api, client.headers["authorization"]):
            await until_clients(client, 2)
            for number in range(20):
                await set_columns(bench.context.database, created["id"], name=f"change {number}")
                await stream.next_named("workspace_updated")
            impatient_api.stop()
            await stream.until_end()
            assert await impatient_api.wait_ended() == 0
    assert "stopped" in impatient_api.log.read_text()


async def test_two_hundred_clients_of_one_process_all_hear_of_a_change(
    bench: ApiBench, api: ApiProcess, relay: None
) -> None:
    people = [await bench.person() for _ in range(4)]
    async with AsyncExitStack() as stack:
        streams: list[tuple[Person, EventStream]] = []
        for person in people:
            client = await stack.enter_async_context(program(bench, person, api))
            opened = [stack.enter_async_context(follow(client)) for _ in range(CLIENTS // len(people))]
            streams += [(person, each) for each in [await opening for opening in opened]]
        await asyncio.gather(*(stream.next_named("snapshot") for _, stream in streams))
        await until_clients(client, CLIENTS)
        dropped = await metric(client, "live_dropped")
        created = {person.user_id: (await person.create())["id"] for person in people}
        events = await asyncio.gather(*(stream.next_named("workspace_updated") for _, stream in streams))
        told = [event.data["id"] for event in events]
        assert told == [created[person.user_id] for person, _ in streams]
        assert await metric(client, "live_dropped") == dropped
    async with program(bench, people[0], api) as client:
        await until_clients(client, 0)
