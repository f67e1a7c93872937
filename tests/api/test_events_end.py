"""How event streams end: signed out, revoked, not read, or because the API stops."""

import socket
from contextlib import AsyncExitStack

from sqlalchemy import update

from codehub.db.models import ApiToken, Session, User
from tests.api.event_harness import browser, harness, metric, program, until_clients
from tests.api.harness import ApiHarness
from tests.api.process import ApiProcess, calling, follow
from tests.api.workspace_rows import set_columns

__all__ = ["harness"]

# With a window this small, the server soon notices that the client does not read.
SMALL_WINDOW = 4096
# Three bytes each on the wire.
LONG_MEMO = "\u6f22" * 65_000
MOST_CHANGES = 300


async def test_signing_out_ends_the_streams_of_that_session_only(
    harness: ApiHarness, api: ApiProcess
) -> None:
    ada = await harness.person()
    async with (
        browser(ada, api) as client,
        program(harness, ada, api) as other,
        follow(client) as stream,
        follow(other) as stays,
    ):
        await stream.next_named("snapshot")
        await stays.next_named("snapshot")
        assert (await client.post("/api/v1/logout")).status_code == 204
        await stream.until_end()
        await until_clients(client, 1)


async def test_a_revoked_token_ends_its_streams(harness: ApiHarness, api: ApiProcess) -> None:
    ada = await harness.person()
    with_token, token_id = await harness.token_client(ada)
    async with (
        browser(ada, api) as client,
        calling(api.base_url, authorization=with_token.headers["authorization"]) as theirs,
        follow(theirs) as stream,
    ):
        await stream.next_named("snapshot")
        assert (await client.delete(f"/api/v1/tokens/{token_id}")).status_code == 204
        await stream.until_end()
        assert (await theirs.get("/api/v1/events")).status_code == 401


async def test_disabling_a_user_ends_their_streams(harness: ApiHarness, api: ApiProcess) -> None:
    ada, root = await harness.person(), await harness.person(admin=True)
    async with browser(ada, api) as client, browser(root, api) as admin, follow(client) as stream:
        await stream.next_named("snapshot")
        response = await admin.patch(f"/api/v1/admin/users/{ada.user_id}", json={"disabled": True})
        assert response.status_code == 200
        await stream.until_end()


async def test_a_revocation_in_the_database_ends_streams_too(harness: ApiHarness, api: ApiProcess) -> None:
    people = {how: await harness.person() for how in ("session", "token", "user", "expiry")}
    ids = {how: person.user_id for how, person in people.items()}
    now = harness.context.now()
    revocations = [
        update(Session).where(Session.user_id == ids["session"]).values(revoked_at=now),
        update(ApiToken).where(ApiToken.user_id == ids["token"]).values(revoked_at=now),
        update(User).where(User.id == ids["user"]).values(disabled_at=now),
        update(Session).where(Session.user_id == ids["expiry"]).values(expires_at=now),
    ]
    bob = await harness.person()
    async with AsyncExitStack() as stack:
        streams = []
        for how, person in people.items():
            opened = program(harness, person, api) if how == "token" else browser(person, api)
            streams.append(await stack.enter_async_context(follow(await stack.enter_async_context(opened))))
        other = await stack.enter_async_context(browser(bob, api))
        stays = await stack.enter_async_context(follow(other))
        for stream in (*streams, stays):
            await stream.next_named("snapshot")
        async with harness.context.database.transaction() as session:
            for revocation in revocations:
                await session.execute(revocation)
        for stream in streams:
            await stream.until_end()
        await until_clients(other, 1)


async def test_a_client_that_does_not_read_is_dropped_and_delays_no_other(
    harness: ApiHarness, api: ApiProcess, relay: None
) -> None:
    ada = await harness.person()
    created = await ada.create()
    async with program(harness, ada, api) as client, follow(client) as stream:
        await stream.next_named("snapshot")
        dropped = await metric(client, "live_dropped")
        with silent_reader(api, client.headers["authorization"]):
            await until_clients(client, 2)
            for number in range(MOST_CHANGES):
                name = f"change {number}"
                await set_columns(harness.context.database, created["id"], memo=LONG_MEMO, name=name)
                assert (await stream.next_named("workspace_updated")).data["name"] == name
                if await metric(client, "live_dropped") > dropped:
                    break
            assert await metric(client, "live_dropped") == dropped + 1
            # It is dropped although it never reads.
            await until_clients(client, 1)
        await set_columns(harness.context.database, created["id"], name="after")
        assert (await stream.next_named("workspace_updated")).data["name"] == "after"


def silent_reader(api: ApiProcess, authorization: str) -> socket.socket:
    """Request events, and read nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
    connection.connect(("127.0.0.1", api.port))
    request = f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {authorization}\r\n\r\n"
    connection.sendall(request.encode())
    return connection


async def test_an_api_that_stops_ends_its_streams_and_exits_with_0(
    harness: ApiHarness, ending_api: ApiProcess, relay: None
) -> None:
    ada = await harness.person()
    async with program(harness, ada, ending_api) as client, follow(client) as first, follow(client) as second:
        for stream in (first, second):
            await stream.next_named("snapshot")
        ending_api.stop()
        # Reading a stream that was cut off would raise.
        rest = [*await first.until_end(), *await second.until_end()]
        assert {event.name for event in rest} <= {"heartbeat"}
    assert await ending_api.wait_ended() == 0
    log = ending_api.log.read_text()
    assert "stopped" in log
    assert "graceful shutdown exceeded" not in log
    assert "Traceback" not in log


async def test_an_api_that_stops_does_not_wait_for_a_client_that_never_reads(
    harness: ApiHarness, impatient_api: ApiProcess, relay: None
) -> None:
    ada = await harness.person()
    created = await ada.create(memo=LONG_MEMO)
    async with program(harness, ada, impatient_api) as client, follow(client) as stream:
        await stream.next_named("snapshot")
        with silent_reader(impatient_api, client.headers["authorization"]):
            await until_clients(client, 2)
            for number in range(20):
                await set_columns(harness.context.database, created["id"], name=f"change {number}")
                await stream.next_named("workspace_updated")
            impatient_api.stop()
            await stream.until_end()
            assert await impatient_api.wait_ended() == 0
    assert "stopped" in impatient_api.log.read_text()
