"""The health check of an IDE: one HTTP request."""

import asyncio
import contextlib

Headers = tuple[tuple[str, str], ...]

OK = b"200"
HOST = "127.0.0.1"


async def is_healthy(port: int, path: str, headers: Headers, timeout_seconds: float) -> bool:
    """Return whether a GET returns 200 in time."""
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _get_status(port, path, headers) == OK
    except (OSError, TimeoutError, ValueError):
        return False


async def _get_status(port: int, path: str, headers: Headers) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}:{port}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        _, status, *_ = (await reader.readline()).split()
        return status
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
