"""Use is noted where it passes, and reaches Redis whatever happens to Redis."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.activity import RedisActivityBuffer
from codehub.adapters.redis.connection import create_client
from codehub.ports import ActivityBuffer
from proxy.activity import ActivityLog
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward
from testkit.redis_server import RedisServer, running_redis
from testkit.rows import new_workspace_id
from testkit.waiting import until
from tests.fixtures_services import redis_client, redis_server
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import Wire
from tests.proxy.test_tunnel import SWITCH, UPGRADE
from tests.proxy.websocket_frames import BINARY, CLOSE, PONG, TEXT, frame

__all__ = ["redis_client", "redis_server"]

MINE, YOURS = new_workspace_id(), new_workspace_id()
NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
ALL = 100
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
POLL = b"GET /api/kernels?1 HTTP/1.1\r\nHost: h\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n\r\n"
NAVIGATION = POLL.replace(b"cors", b"navigate").replace(b"empty", b"document")
SAVE = POLL.replace(b"GET /api/kernels", b"PUT /api/contents/a.py")
LAYOUT = POLL.replace(b"GET /api/kernels", b"PUT /lab/api/workspaces/default")
KEEP_ALIVE = b"\x09\0\0\0\0\0\0\5\xa0\0\0\0\0"
LOCK_FILE_CHANGED = b"\x01\0\0\4\x6b\0\0\3\x42\0\0\0\x17\x01\0\0\0\xb4f\x0c$onFileEvent\0\0\0\0"
KEY_IN_TERMINAL = (
    b"\x01\0\0\7\x62\0\0\x08\x6f\0\0\0\x26\x04\x04\x06d\x06\xc9\x0e\x01\x0eremoteterminal\x01\x06$input"
    b"\x04\x02\x06\x01\x01\x01l"
)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def buffer(redis_client: Redis, redis_server: RedisServer) -> AsyncIterator[ActivityBuffer]:
    # With more patience than a loaded machine can use up while a test holds Redis up.
    async with create_client(redis_server.url, timeout_seconds=60) as client:
        yield RedisActivityBuffer(client)
    await redis_client.client_unpause()


@pytest.fixture
def book(buffer: ActivityBuffer, clock: Clock) -> ActivityLog:
    return ActivityLog(buffer, clock)


def watch(harness: Harness, book: ActivityLog, ide: str) -> None:
    """Let the proxy of this harness note the use of one workspace."""

    def decide(head: RequestHead) -> Forward:
        observer = book.observe(MINE, ide, head.target.partition(b"?")[0])
        return replace(harness.router.forward, target=head.target, observer=observer)

    harness.router.decide = decide


def open_socket(harness: Harness, path: bytes) -> tuple[Wire, Wire]:
    client = harness.connect()
    client.send(UPGRADE.replace(b"/ws", path))
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(SWITCH)
    client.receive_head()
    return client, upstream


def say(client: Wire, upstream: Wire, *frames: bytes) -> None:
    """Return once they have passed."""
    sent = b"".join(frames)
    client.send(sent)
    assert upstream.receive_exactly(len(sent)) == sent


@pytest.mark.parametrize(("request_head", "uses"), [(POLL, 0), (LAYOUT, 0), (NAVIGATION, 1), (SAVE, 1)])
def test_requests_through_the_proxy_are_use_if_somebody_caused_them(
    harness: Harness, book: ActivityLog, request_head: bytes, uses: int
) -> None:
    watch(harness, book, "jupyterlab")
    harness.exchange(request_head, ANSWER)
    assert (harness.call(lambda: book.uses_noted), book.pending) == (uses, uses)


def test_a_terminal_is_used_by_typing_not_by_being_open(harness: Harness, book: ActivityLog) -> None:
    watch(harness, book, "jupyterlab")
    client, upstream = open_socket(harness, b"/terminals/websocket/1")
    upstream.send(b"\x81\x02hi\x89\x00")
    answer = frame(TEXT, b'["stdin","\\u001b[24;1R"]')
    say(client, upstream, frame(TEXT, b'["set_size",52,134,803,970]'), answer, frame(PONG, b""))
    assert harness.call(lambda: book.uses_noted) == 0
    say(client, upstream, frame(TEXT, b'["stdin","l"]'))
    assert harness.call(lambda: book.uses_noted) == 1


def test_code_server_is_used_by_typing_not_by_being_open(harness: Harness, book: ActivityLog) -> None:
    watch(harness, book, "code-server")
    client, upstream = open_socket(harness, b"/stable-53c2f3253bcf32886706fc023e794bbeb253c90f")
    say(client, upstream, frame(BINARY, KEEP_ALIVE), frame(BINARY, LOCK_FILE_CHANGED))
    assert harness.call(lambda: book.uses_noted) == 0
    say(client, upstream, frame(BINARY, KEY_IN_TERMINAL), frame(CLOSE, b"\x03\xe9"))
    assert harness.call(lambda: book.uses_noted) == 1


async def test_the_last_use_of_each_reaches_the_buffer(
    book: ActivityLog, buffer: ActivityBuffer, clock: Clock
) -> None:
    book.note(MINE)
    book.note(YOURS)
    clock.now += timedelta(minutes=1)
    book.note(MINE)
    assert book.pending == 2
    await book.flush()
    assert (await buffer.take(ALL)).used_at == {MINE: clock.now, YOURS: NOON}
    assert (book.pending, book.uses_noted, book.flush_failures) == (0, 3, 0)


async def test_the_last_use_of_each_outlives_an_outage_which_is_logged_once(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with running_redis(tmp_path) as server:
        async with create_client(server.url) as client:
            buffer = RedisActivityBuffer(client)
            book = ActivityLog(buffer, clock, period_seconds=0.01)
            running = asyncio.create_task(book.run())
            server.kill()
            book.note(MINE)
            book.note(YOURS)

            async def has_failed_often() -> bool:
                return book.flush_failures > 2

            async def is_told() -> bool:
                return not book.pending

            await until(has_failed_often, "flushes into nothing")
            clock.now += timedelta(minutes=1)
            book.note(MINE)
            assert server.start()
            await until(is_told, "a flush")
            assert (await buffer.take(ALL)).used_at == {MINE: clock.now, YOURS: NOON}
            book.note(MINE)
            await until(is_told, "another flush")
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
    assert caplog.text.count("waits in memory") == 1
    assert caplog.text.count("is recorded again") == 1


async def test_a_use_during_a_flush_is_kept_for_the_next_one(
    book: ActivityLog, buffer: ActivityBuffer, clock: Clock, redis_client: Redis
) -> None:
    book.note(MINE)
    flushing = await begin_slow_flush(book, redis_client)
    clock.now += timedelta(minutes=1)
    book.note(MINE)
    await redis_client.client_unpause()
    await flushing
    assert (await buffer.take(ALL)).used_at == {MINE: NOON}
    assert book.pending == 1
    await book.flush()
    assert (await buffer.take(ALL)).used_at == {MINE: clock.now}


async def test_a_flush_that_is_cancelled_loses_nothing(
    book: ActivityLog, buffer: ActivityBuffer, redis_client: Redis
) -> None:
    book.note(MINE)
    flushing = await begin_slow_flush(book, redis_client)
    flushing.cancel()
    with suppress(asyncio.CancelledError):
        await flushing
    assert book.pending == 1
    await redis_client.client_unpause()
    await book.flush()
    assert (await buffer.take(ALL)).used_at == {MINE: NOON}
    assert book.pending == 0


async def begin_slow_flush(book: ActivityLog, client: Redis) -> asyncio.Task[None]:
    """One that Redis has begun to hold up."""
    await client.client_pause(60_000, all=False)
    flushing = asyncio.create_task(book.flush())

    async def is_held_up() -> bool:
        return int((await client.info("clients"))["blocked_clients"]) == 1

    await until(is_held_up, "a flush that Redis holds up")
    return flushing


def test_after_a_use_nobody_looks_at_the_next_messages(buffer: ActivityBuffer, clock: Clock) -> None:
    watch = ActivityLog(buffer, clock).observe(MINE, "code-server", b"/stable-abc")
    watch.message(BINARY, len(KEEP_ALIVE), KEEP_ALIVE)
    assert not watch.is_saturated(), "nothing was found yet, so every message is worth a look"
    watch.message(BINARY, len(KEY_IN_TERMINAL), KEY_IN_TERMINAL)
    assert watch.is_saturated()


async def test_a_flood_is_looked_at_now_and_then(buffer: ActivityBuffer, clock: Clock) -> None:
    watch = ActivityLog(buffer, clock).observe(MINE, "code-server", b"/stable-abc")

    async def sated() -> bool:
        for _ in range(1000):
            watch.message(BINARY, len(KEEP_ALIVE), KEEP_ALIVE)
        return watch.is_saturated()

    await until(sated, "enough was seen of it for now")

    async def hungry() -> bool:
        return not watch.is_saturated()

    await until(hungry, "the next second is worth a look again")
