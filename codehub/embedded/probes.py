"""Requests that check whether a server on loopback is ready."""

import asyncio
import ssl
from contextlib import suppress

from codehub.embedded.free_ports import LOOPBACK

PROBE_SECONDS = 5.0


async def exchange(
    port: int, request: bytes, lines: int = 1, tls: ssl.SSLContext | None = None
) -> list[bytes]:
    """Send a request and return the first lines of the response, or fewer if it has fewer."""
    response: list[bytes] = []
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=tls)
            try:
                writer.write(request)
                response += [await reader.readline() for _ in range(lines)]
            finally:
                writer.close()
    return response


async def http_status(
    port: int,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> int | None:
    """Send an HTTP request without a body. Return the status, or None if there is no response."""
    fields = {"Host": f"{LOOPBACK}:{port}", "Content-Length": "0", "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    response = await exchange(port, f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode(), tls=tls)
    parts = response[0].split() if response else []
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None


async def http_ok(port: int, path: str, tls: ssl.SSLContext | None = None) -> bool:
    return await http_status(port, path, tls=tls) == 200  # noqa: PLR2004
