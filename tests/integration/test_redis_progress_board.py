"""Progress in Redis: its key, its lifetime, and outages."""

import asyncio

import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.progress_board import LIFETIME_SECONDS, RedisProgressBoard
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress
from tests.progress_boards import posted

ONE = WorkspaceId("one")
KEY = "codehub:progress:one"
AGES = 600.0


async def test_every_post_is_kept_for_ten_seconds_from_then(redis_client: Redis) -> None:
    board = RedisProgressBoard(redis_client)
    await board.post(ONE, Progress("download", 1, 2))
    await redis_client.persist(KEY)
    await board.post(ONE, Progress("download", 2, 2))
    assert 0 < await redis_client.pttl(KEY) <= LIFETIME_SECONDS * 1000 == 10_000


@pytest.mark.parametrize(
    "content",
    [
        "",
        "nonsense",
        "[]",
        "7",
        "{}",
        '{"step": "x", "done": "much", "total": null, "unit": "bytes"}',
        '{"step": "x", "done": Infinity, "total": null, "unit": "bytes"}',
        '{"step": "x", "done": 1, "total": [], "unit": "bytes"}',
        '{"step": "\\ud800", "done": 1, "total": null, "unit": "bytes"}',
        b"\xff no text",
        "[" * 99_999,
    ],
)
async def test_an_invalid_entry_is_no_progress(redis_client: Redis, content: str | bytes) -> None:
    await redis_client.set(KEY, content)
    board = RedisProgressBoard(redis_client)
    assert await posted(board, ONE) is None
    assert not await board.read([ONE])


async def test_an_invalid_entry_does_not_hide_other_progress(redis_client: Redis) -> None:
    board = RedisProgressBoard(redis_client)
    await redis_client.set(KEY, "nonsense")
    await board.post(WorkspaceId("other"), Progress("download"))
    assert await board.read([ONE, WorkspaceId("other")]) == {WorkspaceId("other"): Progress("download")}


async def test_no_call_waits_for_a_redis_that_never_responds() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, create_client(f"redis://127.0.0.1:{port}/0", timeout_seconds=AGES) as client:
        board = RedisProgressBoard(client)
        await board.post(ONE, Progress("download"))
        assert await posted(board, ONE) is None
        assert not await board.read([ONE])
        await board.clear(ONE)
