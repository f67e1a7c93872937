"""A front door that does to requests what a broken CodeHub might: pass, turn away, or lose the answer."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO

import aiohttp
from aiohttp import web
from yarl import URL

from gameday.stage.tiny_ide import SIGNATURE

PASSED_ON = ("If-Match", "If-None-Match", "X-CodeHub-Wake")
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FrontDoor:
    """What it does next is what `answer` is set to; every request is remembered."""

    answer: Answering
    url: str = ""
    requests: list[web.Request] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        # It keeps what it has read, for whoever looks at it later.
        await request.read()
        self.requests.append(request)
        return await self.answer(request)


def passing_to(ide_url: str) -> Answering:
    async def forward(request: web.Request) -> web.StreamResponse:
        url = URL(f"{ide_url}/{request.raw_path.split('/', 3)[3]}", encoded=True)
        headers = {name: value for name, value in request.headers.items() if name in PASSED_ON}
        async with aiohttp.ClientSession() as session:
            body = BytesIO(await request.read())
            async with session.request(request.method, url, data=body, headers=headers) as answer:
                content = await answer.read()
                return web.Response(status=answer.status, body=content, headers={SIGNATURE: "1"})

    return forward


def losing(answer: Answering) -> Answering:
    """It is carried out, and nobody hears of it."""

    async def lose(request: web.Request) -> web.StreamResponse:
        await answer(request)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return lose


def saying(status: int, document: object) -> Answering:
    async def say(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=json.dumps(document))

    return say


def refusing(status: int, code: str, **more: str) -> Answering:
    return saying(status, {"error": {"code": code, **more}})


@asynccontextmanager
async def open_front_door(answer: Answering) -> AsyncIterator[FrontDoor]:
    door = FrontDoor(answer)
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{path:.*}", door.serve)
    # Who waits for ever in a handler is let go when the client is gone.
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
