"""Revoked access ends within seconds, including open WebSockets."""

from datetime import UTC, datetime

import aiohttp
import pytest

from codehub.services.credentials import revoke_token
from codehub.services.identity import sign_out
from codehub.services.users import disable_user
from testkit.rows import BY
from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person


async def end_session(harness: FrontDoorHarness, person: Person) -> None:
    await sign_out(harness.database, person.session_id, by=BY, now=datetime.now(UTC))


async def end_token(harness: FrontDoorHarness, person: Person) -> None:
    await revoke_token(harness.database, person.user_id, person.token_id, by=BY, now=datetime.now(UTC))


async def disable(harness: FrontDoorHarness, person: Person) -> None:
    await disable_user(harness.database, person.user_id, by=BY, now=datetime.now(UTC))


@pytest.mark.parametrize(
    ("revoke", "with_token"), [(end_session, False), (end_token, True), (disable, False), (disable, True)]
)
async def test_open_websockets_and_new_requests_end(
    harness: FrontDoorHarness, ann: Person, revoke: object, with_token: bool
) -> None:
    workspace_id = await harness.workspace(ann)
    credential = ann.bearer if with_token else {**ann.cookie, "Origin": harness.url}
    async with running_ide(harness.root, workspace_id):
        socket = await harness.connect(f"/w/{workspace_id}/ws", credential)
        await socket.send_str("hello")
        assert (await socket.receive()).data == "hello"
        await revoke(harness, ann)  # type: ignore[operator]
        message = await socket.receive(timeout=60)
        assert message.type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR}

        async def refused() -> bool:
            return (await harness.request(f"/w/{workspace_id}/", credential)).status == 401

        await until(refused, "new requests are refused")


async def test_other_credentials_of_the_user_still_work(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        kept = await harness.connect(f"/w/{workspace_id}/ws", ann.bearer)
        assert (await harness.request(f"/w/{workspace_id}/", ann.cookie)).status == 200
        await end_session(harness, ann)

        async def refused() -> bool:
            return (await harness.request(f"/w/{workspace_id}/", ann.cookie)).status == 401

        await until(refused, "the session is refused")
        await kept.send_str("still here")
        assert (await kept.receive()).data == "still here"
        await kept.close()


async def test_a_stopped_workspace_gets_no_more_requests(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        assert (await harness.request(f"/w/{workspace_id}/", ann.cookie)).status == 200
        await harness.move(workspace_id, "STANDBY")

        async def refused() -> bool:
            return (await harness.request(f"/w/{workspace_id}/", ann.cookie)).status == 503

        await until(refused, "the change is noticed without an event")


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null"])
async def test_websockets_of_other_origins_are_refused(
    harness: FrontDoorHarness, ann: Person, origin: str | None
) -> None:
    workspace_id = await harness.workspace(ann)
    headers = {**ann.cookie, **({"Origin": origin} if origin else {})}
    async with running_ide(harness.root, workspace_id) as ide:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await harness.connect(f"/w/{workspace_id}/ws", headers)
        assert refused.value.status == 403
        assert ide.requests == []
