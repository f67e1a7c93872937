"""Malformed bytes sent to a real server are refused and cause no server error."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from testkit.waiting import DEADLINE_SECONDS
from tests.api.malformed_requests import WORKSPACES, MalformedHarness, assert_refused, harness, new_workspace
from tests.api.module_fixtures import server_errors_of
from tests.api.process import ApiProcess

__all__ = ["harness"]

TWO_MEGABYTES = 2 * 1024 * 1024


@pytest.fixture
async def wire(served: ApiProcess, harness: MalformedHarness) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {harness.token}"}
    async with httpx.AsyncClient(base_url=served.base_url, headers=headers, timeout=60) as client:
        yield client


def _large_body() -> bytes:
    return new_workspace(memo="m" * TWO_MEGABYTES)


async def test_a_body_with_a_large_content_length_is_refused(wire: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/json"}
    assert_refused(await wire.post(WORKSPACES, content=_large_body(), headers=headers), 413)


async def test_a_large_body_without_a_content_length_is_refused(wire: httpx.AsyncClient) -> None:
    body = _large_body()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    headers = {"content-type": "application/json"}
    assert_refused(await wire.post(WORKSPACES, content=pieces(), headers=headers), 413)


async def test_a_chunked_body_is_accepted(wire: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in new_workspace():
            yield bytes([byte])

    headers = {"content-type": "application/json"}
    response = await wire.post(WORKSPACES, content=pieces(), headers=headers)
    assert response.status_code == 201


async def test_an_anonymous_large_body_is_refused_without_reading_it(served: ApiProcess) -> None:
    async with httpx.AsyncClient(base_url=served.base_url, timeout=60) as client:
        headers = {"content-type": "application/json"}
        assert_refused(await client.post(WORKSPACES, content=_large_body(), headers=headers), 401)


Giant = tuple[str, dict[str, str]]
GIANTS: list[Giant] = [
    (WORKSPACES, {"X-Giant": "x" * 60_000}),
    (WORKSPACES, {"Cookie": "a=" + "x" * 60_000}),
    (f"{WORKSPACES}?q={'q' * 60_000}", {}),
    (f"{WORKSPACES}/{'x' * 60_000}", {}),
]


@pytest.mark.parametrize("giant", GIANTS, ids=["header", "cookie", "query", "path"])
async def test_a_huge_request_does_no_harm(
    giant: tuple[str, dict[str, str]], wire: httpx.AsyncClient
) -> None:
    path, headers = giant
    response = await wire.get(path, headers=headers)
    assert response.status_code < 500
    if response.status_code >= 400:
        assert_refused(response)


LOGIN = b"POST /api/v1/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BYTES = [
    b"\0\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"GET /api/v1/session HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
    b"GET /api/v1/session HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
    LOGIN + b"Content-Length: -1\r\n\r\n",
    LOGIN + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    LOGIN + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    LOGIN + b"Content-Length: 2\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    LOGIN + CHUNKED + b"\r\nzz\r\n",
]


@pytest.mark.parametrize("sent", BYTES, ids=range(len(BYTES)))
async def test_bytes_that_are_not_http_are_refused(sent: bytes, served: ApiProcess) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(sent)
    await writer.drain()
    writer.write_eof()
    async with asyncio.timeout(DEADLINE_SECONDS):
        response = await reader.read()
    writer.close()
    await writer.wait_closed()
    # The server may close the connection without a response.
    assert response == b"" or response.split(b" ")[1].startswith(b"4"), response


async def test_none_of_these_requests_caused_a_server_error(served: ApiProcess) -> None:
    assert server_errors_of(served) == []
