"""Hundreds of open WebSockets at once."""

import asyncio

import aiohttp

from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person

SOCKETS = 300


async def test_many_websockets_idle_together_then_all_echo_and_close(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    async with (
        running_ide(harness.root, workspace_id),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as browser,
    ):
        path, headers = await harness.locate(
            f"/w/{workspace_id}/socket", {**ann.cookie, "Origin": harness.url}
        )
        url = harness.url + path
        sockets = await asyncio.gather(*(browser.ws_connect(url, headers=headers) for _ in range(SOCKETS)))
        assert harness.proxy.server.open_connections == SOCKETS
        for number, socket in enumerate(sockets):
            await socket.send_str(f"{number}")
        assert [await socket.receive_str() for socket in sockets] == [f"{each}" for each in range(SOCKETS)]
        await asyncio.gather(*(socket.close() for socket in sockets))
        assert {socket.close_code for socket in sockets} == {aiohttp.WSCloseCode.OK}

        async def all_closed() -> bool:
            return harness.proxy.server.open_connections == 0

        await until(all_closed, "the proxy has closed all connections")
