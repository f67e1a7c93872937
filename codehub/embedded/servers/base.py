"""The configuration and the probes that all embedded servers use."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import Credentials, DataDir
from codehub.embedded.free_ports import LOOPBACK
from codehub.settings import Settings

PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class StackConfig:
    """The configuration of the servers of one data directory; ports and credentials are kept."""

    data: DataDir
    settings: Settings
    ports: Mapping[str, int]
    credentials: Credentials = field(repr=False)


@dataclass(frozen=True)
class Server:
    """A server that is embedded unless its URL is set."""

    name: str
    title: str
    ports: tuple[str, ...]
    child: Callable[[StackConfig], Child]
    environment: Callable[[StackConfig], dict[str, str]]
    """Returns the settings that connect a CodeHub process to the server."""


async def exchange(port: int, request: bytes, lines: int = 1) -> list[bytes]:
    """Send a request and return the first lines of the response, or fewer if it has fewer."""
    response: list[bytes] = []
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(request)
                response += [await reader.readline() for _ in range(lines)]
            finally:
                writer.close()
    return response


async def http_status(
    port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> int | None:
    """Send an HTTP request without a body. Return the status, or None if there is no response."""
    fields = {"Host": f"{LOOPBACK}:{port}", "Content-Length": "0", "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    response = await exchange(port, f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode())
    parts = response[0].split() if response else []
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None


async def http_ok(port: int, path: str) -> bool:
    return await http_status(port, path) == 200  # noqa: PLR2004
