"""What the embedded servers share."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import Credentials, DataDir
from codehub.embedded.free_ports import LOOPBACK
from codehub.settings import Settings


@dataclass(frozen=True)
class Place:
    """One data directory: ports and credentials stay the same from start to start."""

    data: DataDir
    settings: Settings
    ports: Mapping[str, int]
    credentials: Credentials = field(repr=False)


@dataclass(frozen=True)
class Server:
    """A server that is started here, unless its URL is set."""

    name: str
    title: str
    ports: tuple[str, ...]
    child: Callable[[Place], Child]
    environment: Callable[[Place], dict[str, str]]
    """The settings that lead a CodeHub process to it."""


PROBE_SECONDS = 5.0


async def exchange(port: int, request: bytes, lines: int = 1) -> list[bytes]:
    """Send and return the first lines of the answer; fewer, or none, if there is no such answer."""
    answer: list[bytes] = []
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(request)
                answer += [await reader.readline() for _ in range(lines)]
            finally:
                writer.close()
    return answer


async def http_status(
    port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> int | None:
    """The status of an HTTP request without a body; None if nobody answers."""
    fields = {"Host": f"{LOOPBACK}:{port}", "Content-Length": "0", "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    answer = await exchange(port, f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode())
    words = answer[0].split() if answer else []
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None


async def http_ok(port: int, path: str) -> bool:
    return await http_status(port, path) == 200  # noqa: PLR2004
