"""A web server on a port of a workspace, behind the port forwarder of the real agent."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import WSMsgType, web

from codehub.adapters.local.instance_files import SOCKETS_NAME, read_state
from codehub.adapters.local.launcher import AGENT_VARIABLE, RUN_AGENT
from codehub.adapters.local.root import LocalRoot
from codehub.domain.conditions import WorkspaceId
from codehub.instance_ports import RESERVED_PORTS, forwarder_options
from tests.front_door.fake_ide import running_ide

REPOSITORY = Path(__file__).parents[2]


@dataclass
class FakeProgram:
    """A program that records its requests."""

    port: int = 0
    requests: list[web.BaseRequest] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        if request.headers.get("Upgrade") == "websocket":
            return await self._echo(request)
        if request.path == "/stream":
            return await self._stream(request)
        seen = {"path": request.path_qs, "headers": dict(request.headers), "body": await request.text()}
        response = web.json_response(seen)
        response.headers.add("Set-Cookie", "codehub_workspace=stolen; Path=/")
        response.headers.add("Set-Cookie", "theirs=1; Path=/")
        return response

    async def _echo(self, request: web.BaseRequest) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=["vite-hmr"])
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
        return socket

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(f"data: {json.dumps('still here')}\n\n".encode())
            await asyncio.sleep(0.05)


@asynccontextmanager
async def running_program(root: LocalRoot, workspace_id: WorkspaceId) -> AsyncIterator[FakeProgram]:
    """Run a program on loopback, in an instance with an IDE and an agent."""
    program = FakeProgram()
    runner = web.ServerRunner(web.Server(program.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    program.port = runner.addresses[0][1]
    try:
        async with running_ide(root, workspace_id), running_agent(root, workspace_id):
            yield program
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running_agent(root: LocalRoot, workspace_id: WorkspaceId) -> AsyncIterator[None]:
    """Run the agent where the instance has its sockets; its IDE does nothing."""
    directory = root.instance(workspace_id)
    state = read_state(directory)
    assert state is not None
    address = {"sockets": str(directory / SOCKETS_NAME), "name": state.ports_socket}
    options = {
        "sockets": "",
        "ide_socket": "",
        "services": {"ports": forwarder_options(address, RESERVED_PORTS)},
    }
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", RUN_AGENT, str(REPOSITORY)),
        *("sh", "-c", "echo ready; exec sleep 1000"),
        env={"PATH": os.environ["PATH"], AGENT_VARIABLE: json.dumps(options)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert agent.stdout is not None
        assert await agent.stdout.readline() == b"ready\n"
        yield
    finally:
        agent.terminate()
        await agent.wait()
