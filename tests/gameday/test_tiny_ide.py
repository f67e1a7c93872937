"""The game day's IDE: acknowledged changes are on disk, and refused ones change nothing."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from yarl import URL

from gameday.stage.tiny_ide import PARTS, SECRET_HEADER, SIGNATURE, hash_tree
from testkit.waiting import until
from tests.gameday.ides import RunningIde, running_ide

MEGABYTE = 1 << 20
CREATE = {"If-None-Match": "*"}


@pytest.fixture
async def ide(tmp_path: Path) -> AsyncIterator[RunningIde]:
    async with running_ide(tmp_path / "home") as running:
        yield running


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def parts_of(ide: RunningIde) -> list[str]:
    return [each.name for each in (ide.home / PARTS).iterdir()]


async def send(
    session: aiohttp.ClientSession,
    ide: RunningIde,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes]:
    url = URL(ide.url + path, encoded=True)
    async with session.request(method, url, data=body and BytesIO(body), headers=headers) as response:
        assert SIGNATURE in response.headers
        return response.status, await response.read()


async def test_a_file_is_read_back_as_it_was_written(ide: RunningIde, session: aiohttp.ClientSession) -> None:
    content = os.urandom(3 * MEGABYTE)
    written = await send(session, ide, "PUT", "/files/src/data.bin", content, CREATE)
    assert written == (200, digest(content).encode())
    assert await send(session, ide, "GET", "/files/src/data.bin") == (200, content)
    assert hash_tree(ide.home) == {"src/data.bin": digest(content)}
    assert parts_of(ide) == []


async def test_the_tree_lists_every_file_by_name(ide: RunningIde, session: aiohttp.ClientSession) -> None:
    for path in ("/files/100%25.log", "/files/gr%C3%B6%C3%9Fe/a%20b"):
        await send(session, ide, "PUT", path, b"content", CREATE)
    async with session.get(f"{ide.url}/tree") as response:
        tree = await response.json(content_type=None)
    assert tree == dict.fromkeys(("100%.log", "größe/a b"), digest(b"content"))
    assert tree == hash_tree(ide.home)


async def test_a_change_that_names_other_content_is_refused(
    ide: RunningIde, session: aiohttp.ClientSession
) -> None:
    assert (await send(session, ide, "PUT", "/files/a", b"x", {"If-Match": digest(b"old")}))[0] == 412
    await send(session, ide, "PUT", "/files/a", b"first", CREATE)
    assert (await send(session, ide, "PUT", "/files/a", b"second", CREATE))[0] == 412
    assert (await send(session, ide, "DELETE", "/files/a", headers={"If-Match": digest(b"x")}))[0] == 412
    assert hash_tree(ide.home) == {"a": digest(b"first")}
    assert parts_of(ide) == []


async def test_a_change_must_name_the_content_it_replaces(
    ide: RunningIde, session: aiohttp.ClientSession
) -> None:
    assert (await send(session, ide, "PUT", "/files/a", b"x" * MEGABYTE))[0] == 428
    assert hash_tree(ide.home) == {}


async def test_a_deleted_file_is_gone(ide: RunningIde, session: aiohttp.ClientSession) -> None:
    await send(session, ide, "PUT", "/files/a", b"first", CREATE)
    await send(session, ide, "PUT", "/files/a", b"second", {"If-Match": digest(b"first")})
    assert (await send(session, ide, "DELETE", "/files/a", headers={"If-Match": digest(b"second")}))[0] == 200
    assert (await send(session, ide, "GET", "/files/a"))[0] == 404
    assert hash_tree(ide.home) == {}


@pytest.mark.parametrize("path", ["/files/../a", "/files//a", "/files/a/%2e%2e/b", "/files/", "/files/%00"])
async def test_a_name_cannot_leave_the_home(
    ide: RunningIde, session: aiohttp.ClientSession, path: str
) -> None:
    assert (await send(session, ide, "PUT", path, b"x", CREATE))[0] == 400
    assert (await send(session, ide, "GET", path))[0] == 400


async def test_a_full_disk_refuses_the_change_and_keeps_the_old_content(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    async with running_ide(tmp_path / "home", disk_bytes=MEGABYTE) as ide:
        await send(session, ide, "PUT", "/files/a", b"old", CREATE)
        assert (await send(session, ide, "PUT", "/files/big", b"x" * 3 * MEGABYTE, CREATE))[0] == 507
        overwrite = {"If-Match": digest(b"old")}
        assert (await send(session, ide, "PUT", "/files/a", b"x" * 3 * MEGABYTE, overwrite))[0] == 507
        assert await send(session, ide, "GET", "/files/a") == (200, b"old")
        # A refused file uses no space.
        assert (await send(session, ide, "PUT", "/files/b", b"x" * (MEGABYTE // 2), CREATE))[0] == 200


async def test_an_incomplete_body_changes_nothing(ide: RunningIde, session: aiohttp.ClientSession) -> None:
    address = urlsplit(ide.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(
        b"PUT /files/a HTTP/1.1\r\nHost: ide\r\nIf-None-Match: *\r\nContent-Length: 1000\r\n\r\nhalf"
    )
    await writer.drain()

    async def is_writing() -> bool:
        return (ide.home / PARTS).exists() and parts_of(ide) != []

    async def removed() -> bool:
        return parts_of(ide) == []

    await until(is_writing, "the IDE began to write")
    writer.close()
    await until(removed, "the IDE removed the incomplete file")
    assert hash_tree(ide.home) == {}
    assert (await send(session, ide, "GET", "/files/a"))[0] == 404


@pytest.mark.parametrize("length", [0, 1, 125, 126, 65535, 65536, 300_000])
async def test_a_websocket_echoes_messages_of_every_length(
    ide: RunningIde, session: aiohttp.ClientSession, length: int
) -> None:
    async with session.ws_connect(f"{ide.url}/ws", max_msg_size=0) as socket:
        for text in ("ä" * (length // 2), "last"):
            await socket.send_str(text)
            assert await socket.receive_str() == text
        await socket.ping(b"there?")
        await socket.close(code=1000)
        assert socket.close_code == 1000


async def test_a_request_for_another_ide_changes_nothing_and_is_not_signed(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    async with running_ide(tmp_path / "home", secret="ours") as ide:  # noqa: S106 (no secret)
        for secret in ({}, {SECRET_HEADER: "another's"}):
            url, headers = f"{ide.url}/files/a", {**CREATE, **secret}
            async with session.put(url, data=b"content", headers=headers) as refused:
                assert refused.status == 401
                assert SIGNATURE not in refused.headers
        assert hash_tree(ide.home) == {}
        written = await send(session, ide, "PUT", "/files/a", b"content", {**CREATE, SECRET_HEADER: "ours"})
        assert written == (200, digest(b"content").encode())


async def test_it_ends_immediately_on_sigterm(ide: RunningIde, session: aiohttp.ClientSession) -> None:
    async with session.ws_connect(f"{ide.url}/ws"):
        ide.process.terminate()
        assert await ide.process.wait() == 0
