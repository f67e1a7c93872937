"""What was allowed and no longer is ends within seconds, open WebSockets included."""

from datetime import UTC, datetime

import aiohttp
import pytest

from codehub.services.identity import sign_out
from codehub.services.tokens import revoke_token
from codehub.services.users import disable_user
from tests.front_door.harness import Person, Stage
from tests.front_door.ide import running_ide
from tests.waiting import until


async def end_session(stage: Stage, person: Person) -> None:
    await sign_out(stage.database, person.session_id, now=datetime.now(UTC))


async def end_token(stage: Stage, person: Person) -> None:
    await revoke_token(stage.database, person.user_id, person.token_id, now=datetime.now(UTC))


async def disable(stage: Stage, person: Person) -> None:
    await disable_user(stage.database, person.user_id, now=datetime.now(UTC))


@pytest.mark.parametrize(
    ("revoke", "with_token"), [(end_session, False), (end_token, True), (disable, False), (disable, True)]
)
async def test_open_websockets_and_new_requests_end(
    stage: Stage, ann: Person, revoke: object, with_token: bool
) -> None:
    workspace_id = await stage.workspace(ann)
    credential = ann.bearer if with_token else {**ann.cookie, "Origin": stage.url}
    async with running_ide(stage.root, workspace_id):
        socket = await stage.client.ws_connect(f"{stage.url}/w/{workspace_id}/ws", headers=credential)
        await socket.send_str("hello")
        assert (await socket.receive()).data == "hello"
        await revoke(stage, ann)  # type: ignore[operator]
        message = await socket.receive(timeout=60)
        assert message.type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR}

        async def refused() -> bool:
            return (await stage.ask(f"/w/{workspace_id}/", credential)).status == 401

        await until(refused, "new requests are refused")


async def test_other_credentials_of_the_user_go_on(stage: Stage, ann: Person) -> None:
    workspace_id = await stage.workspace(ann)
    async with running_ide(stage.root, workspace_id):
        kept = await stage.client.ws_connect(f"{stage.url}/w/{workspace_id}/ws", headers=ann.bearer)
        assert (await stage.ask(f"/w/{workspace_id}/", ann.cookie)).status == 200
        await end_session(stage, ann)

        async def refused() -> bool:
            return (await stage.ask(f"/w/{workspace_id}/", ann.cookie)).status == 401

        await until(refused, "the session is refused")
        await kept.send_str("still here")
        assert (await kept.receive()).data == "still here"
        await kept.close()


async def test_a_stopped_workspace_is_no_longer_forwarded_to(stage: Stage, ann: Person) -> None:
    workspace_id = await stage.workspace(ann)
    async with running_ide(stage.root, workspace_id):
        assert (await stage.ask(f"/w/{workspace_id}/", ann.cookie)).status == 200
        await stage.move(workspace_id, "STANDBY")

        async def refused() -> bool:
            return (await stage.ask(f"/w/{workspace_id}/", ann.cookie)).status == 503

        await until(refused, "what it was is forgotten without an event too")


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null"])
async def test_websockets_of_other_origins_are_refused(stage: Stage, ann: Person, origin: str | None) -> None:
    workspace_id = await stage.workspace(ann)
    headers = {**ann.cookie, **({"Origin": origin} if origin else {})}
    async with running_ide(stage.root, workspace_id) as ide:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stage.client.ws_connect(f"{stage.url}/w/{workspace_id}/ws", headers=headers)
        assert refused.value.status == 403
        assert ide.seen == []
