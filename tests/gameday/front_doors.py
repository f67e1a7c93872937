"""A fake front door that forwards, refuses or loses requests as a broken CodeHub might."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO

import aiohttp
from aiohttp import web
from yarl import URL

from gameday.stage.tiny_ide import SIGNATURE

FORWARDED_HEADERS = ("If-Match", "If-None-Match", "X-CodeHub-Wake")
RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FrontDoor:
    """Handles requests with `handler`, which tests replace, and records them."""

    handler: RequestHandler
    url: str = ""
    requests: list[web.Request] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        # Read the body now, so that tests can inspect it later.
        await request.read()
        self.requests.append(request)
        return await self.handler(request)


def forward_to(ide_url: str) -> RequestHandler:
    async def forward(request: web.Request) -> web.StreamResponse:
        url = URL(f"{ide_url}/{request.raw_path.split('/', 3)[3]}", encoded=True)
        headers = {name: value for name, value in request.headers.items() if name in FORWARDED_HEADERS}
        async with aiohttp.ClientSession() as session:
            body = BytesIO(await request.read())
            async with session.request(request.method, url, data=body, headers=headers) as response:
                content = await response.read()
                return web.Response(status=response.status, body=content, headers={SIGNATURE: "1"})

    return forward


def lose_response(handler: RequestHandler) -> RequestHandler:
    """Carry out the request, then abort the connection."""

    async def lose(request: web.Request) -> web.StreamResponse:
        await handler(request)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return lose


def respond(status: int, document: object) -> RequestHandler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=json.dumps(document))

    return handle


def respond_with_error(status: int, code: str, **details: str) -> RequestHandler:
    return respond(status, {"error": {"code": code, **details}})


@asynccontextmanager
async def open_front_door(handler: RequestHandler) -> AsyncIterator[FrontDoor]:
    door = FrontDoor(handler)
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{path:.*}", door.serve)
    # A handler that waits forever is cancelled when the client disconnects.
    runner = web.AppRunner(application, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    door.url = f"http://{host}:{port}"
    try:
        yield door
    finally:
        await runner.cleanup()
