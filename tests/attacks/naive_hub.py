"""A hub without any protection: every attempt against it must succeed, or the attempt itself is broken."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import WSMsgType, web

from codehub.origins import PLAIN_COOKIE

USERS = {"alice": "the-account-of-alice", "mallory": "the-account-of-mallory"}
SECRET = "the-secret-of-the-neighbor"  # noqa: S105
# Most servers accept no more.
MAX_HEAD_BYTES = 65_536


@dataclass
class NaiveHub:
    """One origin for all pages; it checks only the cookie, which scripts can write."""

    site: dict[str, str]
    url: str = ""
    changes: str = ""
    entered: str = ""
    leaked: str = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        user = _first_session(request.headers.get("Cookie", ""))
        body = await request.text()
        if user:
            self._record(request, body)
        if request.headers.get("Upgrade") == "websocket":
            return await _accept(request)
        name = request.path.rpartition("/")[2]
        if name == "login":
            return _sign_in("mallory" if "mallory" in body else "alice")
        if name == "logout":
            return _sign_in("")
        if name == "session":
            return web.json_response({"user": {"username": USERS.get(user)}, "csrf_token": ""})
        if name == "events":
            text = f"event: message\ndata: {USERS.get(user)}\n\n"
            return web.Response(text=text, content_type="text/event-stream")
        return self._file(name)

    def _record(self, request: web.BaseRequest, body: str) -> None:
        if request.path.startswith("/w/neighbor/"):
            self.entered += request.path
        if request.path.startswith("/w/hostile/"):
            self.leaked += request.headers.get("Cookie", "")
        if request.method not in {"GET", "HEAD"}:
            self.changes += body

    def _file(self, name: str) -> web.Response:
        content = self.site.get(name) or self.site["index.html"]
        head, _, text = content.partition("\n\n")
        response = web.Response(text=text)
        for line in filter(None, head.split("\n")):
            key, _, value = line.partition(": ")
            if key == "Content-Type":
                del response.headers[key]
            response.headers.add(key, value)
        return response


def _first_session(cookies: str) -> str:
    pairs = (pair.strip().partition("=") for pair in cookies.split(";"))
    return next((value for name, _, value in pairs if name == PLAIN_COOKIE), "")


def _sign_in(user: str) -> web.Response:
    response = web.json_response({})
    # Scripts can read and write it, and all sites send it. Browsers treat loopback as secure.
    response.set_cookie(PLAIN_COOKIE, user, samesite="None", secure=True)
    return response


async def _accept(request: web.BaseRequest) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.ERROR:
            break
    return socket


@asynccontextmanager
async def running_naive_hub(site: dict[str, str]) -> AsyncIterator[NaiveHub]:
    hub = NaiveHub(site)
    server = web.Server(hub.handle, max_line_size=MAX_HEAD_BYTES * 2, max_field_size=MAX_HEAD_BYTES)
    runner = web.ServerRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    hub.url = f"http://localhost:{runner.addresses[0][1]}"
    try:
        yield hub
    finally:
        await runner.cleanup()
