"""The health check of an IDE: one HTTP request."""

import asyncio
import contextlib

from codehub.unix_sockets import connectable

Headers = tuple[tuple[str, str], ...]

OK = b"200"
HOST = "127.0.0.1"


async def is_healthy(address: int | str, path: str, headers: Headers, timeout_seconds: float) -> bool:
    """Return whether a GET returns 200 in time; the address is a local port or a UNIX socket path."""
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _get_status(address, path, headers) == OK
    except (OSError, TimeoutError, ValueError):
        return False


async def _get_status(address: int | str, path: str, headers: Headers) -> bytes:
    reader, writer = await _connect(address)
    try:
        lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        _, status, *_ = (await reader.readline()).split()
        return status
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _connect(address: int | str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, int):
        return await asyncio.open_connection(HOST, address)
    with connectable(address) as socket:
        return await asyncio.open_unix_connection(socket)
