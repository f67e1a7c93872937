"""Requests with a response that does not end: the caller disconnects once it has begun."""

import asyncio
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp, Message

from testkit.waiting import DEADLINE_SECONDS
from tests.api.harness import ORIGIN


async def status_of_stream(
    app: ASGIApp, method: str, path: str, headers: Mapping[str, str], seen: dict[str, str] | None = None
) -> int:
    """Return the status of the response, and put its headers into `seen`."""
    parts = urlsplit(path)
    begun = asyncio.Event()
    starts: list[Message] = []
    requests: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if requests:
            return requests.pop()
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            starts.append(message)
            begun.set()

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        # Up to this version, the application polls for disconnects.
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [(b"host", urlsplit(ORIGIN).netloc.encode()), *raw],
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8080),
    }
    async with asyncio.timeout(DEADLINE_SECONDS):
        await app(scope, receive, send)
    (start,) = starts
    if seen is not None:
        seen.update({name.decode(): value.decode() for name, value in start["headers"]})
    status: int = start["status"]
    return status
