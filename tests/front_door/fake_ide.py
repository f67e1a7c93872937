"""A web server in place of an IDE, recorded like an instance of the local backend."""

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import WSMsgType, web

from codehub.adapters.local.instance_files import LOCK_NAME, SOCKETS_NAME, InstanceState
from codehub.adapters.local.locks import acquire_alive_lock
from codehub.adapters.local.root import LocalRoot
from codehub.domain.conditions import WorkspaceId

COOKIES = (
    "codehub_session=stolen; Path=/",
    "__Host-codehub_session=stolen; Path=/",
    "Codehub_Workspace=stolen; Path=/",
    "__Host-codehub_workspace=stolen; Path=/",
    "wide=1; Path=/; Domain=localhost",
    "theirs=1; Path=/",
)


@dataclass
class FakeIde:
    """An IDE that records its requests. A code-server knows no prefix and has no token."""

    workspace_id: WorkspaceId
    name: str = "jupyterlab"
    token: str = field(default_factory=secrets.token_hex)
    requests: list[web.BaseRequest] = field(default_factory=list)

    def last_request(self, path: str) -> web.BaseRequest:
        """Return the last request for this path."""
        return next(each for each in reversed(self.requests) if each.path == path)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        is_known = request.headers.get("Authorization") == f"token {self.token}"
        if self.name == "jupyterlab" and not is_known:
            return web.Response(status=403)
        self.requests.append(request)
        if request.headers.get("Upgrade") == "websocket":
            return await self._echo(request)
        response = web.Response(text=f"{request.method} {request.path_qs} {await request.text()}")
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Service-Worker-Allowed"] = "/"
        for cookie in COOKIES:
            response.headers.add("Set-Cookie", cookie)
        return response

    async def _echo(self, request: web.BaseRequest) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
        return socket


@contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """Return a path of a directory that is short enough for a socket in it."""
    descriptor = os.open(directory, os.O_PATH)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@asynccontextmanager
async def running_ide(
    root: LocalRoot, workspace_id: WorkspaceId, name: str = "jupyterlab"
) -> AsyncIterator[FakeIde]:
    """Run an IDE as the instance of this workspace."""
    ide = FakeIde(workspace_id, name)
    runner = web.ServerRunner(web.Server(ide.handle))
    await runner.setup()
    directory = root.instance(workspace_id)
    (directory / SOCKETS_NAME).mkdir(parents=True, exist_ok=True)
    with short_path(directory / SOCKETS_NAME) as sockets:
        state = InstanceState(name, ide.token)
        await web.UnixSite(runner, f"{sockets}/{state.socket}").start()
    life = acquire_alive_lock(directory / LOCK_NAME)
    state.write(directory)
    try:
        yield ide
    finally:
        os.close(life)
        await runner.cleanup()
