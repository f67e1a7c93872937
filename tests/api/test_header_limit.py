"""The size of request headers is limited, however they arrive."""

import asyncio
from contextlib import suppress

import pytest

from api.server import MAX_HEADER_BYTES
from codehub.security_headers import SECURITY_HEADERS
from testkit.waiting import DEADLINE_SECONDS
from tests.api.process import running_api

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: codehub\r\n"


async def ask(port: int, pieces: list[bytes]) -> bytes:
    """Send the pieces and return the response until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        # The server may close the connection before everything is sent.
        with suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await reader.read(1_000)
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("piece", [1_000, 50_000], ids=["in small pieces", "in large pieces"])
async def test_endless_headers_are_refused(api_environment: dict[str, str], piece: int) -> None:
    async with running_api(api_environment) as api:
        count = 20 * MAX_HEADER_BYTES // piece
        response = await ask(api.port, [HEALTH, b"X-Long: ", *[b"x" * piece] * count, b"\r\n\r\n"])
        assert response == b"" or response.startswith(b"HTTP/1.1 400")
        malformed = await ask(api.port, [b"GET / HTTP/1.1\r\nHost\r\n\r\n"])
        assert malformed.startswith(b"HTTP/1.1 400")
        for name, value in SECURITY_HEADERS.items():
            assert f"\r\n{name}: {value}\r\n".encode() in malformed
        long_but_right = b"X-Long: " + b"x" * (MAX_HEADER_BYTES // 2)
        response = await ask(api.port, [HEALTH + long_but_right + b"\r\nConnection: close\r\n\r\n"])
        assert response.startswith(b"HTTP/1.1 200")


async def test_the_body_does_not_count_as_headers(api_environment: dict[str, str]) -> None:
    async with running_api(api_environment) as api:
        head = b"POST /api/v1/login HTTP/1.1\r\nHost: codehub\r\nContent-Type: application/json\r\n"
        body = b'"' + b"x" * (3 * MAX_HEADER_BYTES) + b'"'
        length = f"Content-Length: {len(body)}\r\n\r\n".encode()
        response = await ask(api.port, [head + length + body])
        assert response.startswith(b"HTTP/1.1 400")
        assert b"application/json" in response  # from the route, not from the limit
