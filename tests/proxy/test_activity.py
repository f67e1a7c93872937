"""Activity is recorded as it passes, and reaches Redis despite outages."""

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
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import RawConnection
from tests.proxy.test_tunnel import SWITCH, UPGRADE
from tests.proxy.websocket_frames import BINARY, CLOSE, PONG, TEXT, frame

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
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def buffer(redis_client: Redis, redis_server: RedisServer) -> AsyncIterator[ActivityBuffer]:
    # Long enough for a loaded machine while a test pauses Redis.
    async with create_client(redis_server.url, timeout_seconds=60) as client:
        yield RedisActivityBuffer(client)
    await redis_client.client_unpause()


@pytest.fixture
def log(buffer: ActivityBuffer, clock: Clock) -> ActivityLog:
    return ActivityLog(buffer, clock)


def watch(harness: Harness, log: ActivityLog, ide: str) -> None:
    """Let the proxy record the activity of one workspace."""

    def decide(head: RequestHead) -> Forward:
        observer = log.observe(MINE, ide, head.target.partition(b"?")[0])
        return replace(harness.router.forward, target=head.target, observer=observer)

    harness.router.decide = decide


def open_socket(harness: Harness, path: bytes) -> tuple[RawConnection, RawConnection]:
    client = harness.connect()
    client.send(UPGRADE.replace(b"/ws", path))
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(SWITCH)
    client.receive_head()
    return client, upstream


def say(client: RawConnection, upstream: RawConnection, *frames: bytes) -> None:
    """Send frames and wait until they have passed."""
    sent = b"".join(frames)
    client.send(sent)
    assert upstream.receive_exactly(len(sent)) == sent


@pytest.mark.parametrize(("request_head", "uses"), [(POLL, 0), (LAYOUT, 0), (NAVIGATION, 1), (SAVE, 1)])
def test_requests_are_activity_if_a_person_caused_them(
    harness: Harness, log: ActivityLog, request_head: bytes, uses: int
) -> None:
    watch(harness, log, "jupyterlab")
    harness.exchange(request_head, ANSWER)
    assert (harness.call(lambda: log.uses_noted), log.pending) == (uses, uses)


def test_typing_in_a_terminal_is_activity_and_an_open_terminal_is_not(
    harness: Harness, log: ActivityLog
) -> None:
    watch(harness, log, "jupyterlab")
    client, upstream = open_socket(harness, b"/terminals/websocket/1")
    upstream.send(b"\x81\x02hi\x89\x00")
    response = frame(TEXT, b'["stdin","\\u001b[24;1R"]')
    say(client, upstream, frame(TEXT, b'["set_size",52,134,803,970]'), response, frame(PONG, b""))
    assert harness.call(lambda: log.uses_noted) == 0
    say(client, upstream, frame(TEXT, b'["stdin","l"]'))
    assert harness.call(lambda: log.uses_noted) == 1


def test_typing_in_code_server_is_activity_and_an_open_tab_is_not(harness: Harness, log: ActivityLog) -> None:
    watch(harness, log, "code-server")
    client, upstream = open_socket(harness, b"/stable-53c2f3253bcf32886706fc023e794bbeb253c90f")
    say(client, upstream, frame(BINARY, KEEP_ALIVE), frame(BINARY, LOCK_FILE_CHANGED))
    assert harness.call(lambda: log.uses_noted) == 0
    say(client, upstream, frame(BINARY, KEY_IN_TERMINAL), frame(CLOSE, b"\x03\xe9"))
    assert harness.call(lambda: log.uses_noted) == 1


async def test_the_last_activity_of_each_workspace_reaches_the_buffer(
    log: ActivityLog, buffer: ActivityBuffer, clock: Clock
) -> None:
    log.note(MINE)
    log.note(YOURS)
    clock.now += timedelta(minutes=1)
    log.note(MINE)
    assert log.pending == 2
    await log.flush()
    assert (await buffer.take(ALL)).used_at == {MINE: clock.now, YOURS: NOON}
    assert (log.pending, log.uses_noted, log.flush_failures) == (0, 3, 0)


async def test_activity_survives_an_outage_which_is_logged_once(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with running_redis(tmp_path) as server:
        async with create_client(server.url) as client:
            buffer = RedisActivityBuffer(client)
            log = ActivityLog(buffer, clock, period_seconds=0.01)
            running = asyncio.create_task(log.run())
            server.kill()
            log.note(MINE)
            log.note(YOURS)

            async def has_failed_often() -> bool:
                return log.flush_failures > 2

            async def is_told() -> bool:
                return not log.pending

            await until(has_failed_often, "flushes into nothing")
            clock.now += timedelta(minutes=1)
            log.note(MINE)
            assert server.start()
            await until(is_told, "a flush")
            assert (await buffer.take(ALL)).used_at == {MINE: clock.now, YOURS: NOON}
            log.note(MINE)
            await until(is_told, "another flush")
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
    assert caplog.text.count("waits in memory") == 1
    assert caplog.text.count("is recorded again") == 1


async def test_activity_during_a_flush_is_kept_for_the_next_one(
    log: ActivityLog, buffer: ActivityBuffer, clock: Clock, redis_client: Redis
) -> None:
    log.note(MINE)
    flushing = await begin_slow_flush(log, redis_client)
    clock.now += timedelta(minutes=1)
    log.note(MINE)
    await redis_client.client_unpause()
    await flushing
    assert (await buffer.take(ALL)).used_at == {MINE: NOON}
    assert log.pending == 1
    await log.flush()
    assert (await buffer.take(ALL)).used_at == {MINE: clock.now}


async def test_a_flush_that_is_cancelled_loses_nothing(
    log: ActivityLog, buffer: ActivityBuffer, redis_client: Redis
) -> None:
    log.note(MINE)
    flushing = await begin_slow_flush(log, redis_client)
    flushing.cancel()
    with suppress(asyncio.CancelledError):
        await flushing
    assert log.pending == 1
    await redis_client.client_unpause()
    await log.flush()
    assert (await buffer.take(ALL)).used_at == {MINE: NOON}
    assert log.pending == 0


async def begin_slow_flush(log: ActivityLog, client: Redis) -> asyncio.Task[None]:
    """Return a flush that Redis is holding up."""
    await client.client_pause(60_000, all=False)
    flushing = asyncio.create_task(log.flush())

    async def is_held_up() -> bool:
        return int((await client.info("clients"))["blocked_clients"]) == 1

    await until(is_held_up, "a flush that Redis holds up")
    return flushing


def test_after_activity_the_next_messages_are_not_checked(buffer: ActivityBuffer, clock: Clock) -> None:
    watch = ActivityLog(buffer, clock).observe(MINE, "code-server", b"/stable-abc")
    watch.message(BINARY, len(KEEP_ALIVE), KEEP_ALIVE)
    assert not watch.is_saturated(), "no activity was found yet, so every message is checked"
    watch.message(BINARY, len(KEY_IN_TERMINAL), KEY_IN_TERMINAL)
    assert watch.is_saturated()


async def test_only_some_messages_of_a_flood_are_checked(buffer: ActivityBuffer, clock: Clock) -> None:
    watch = ActivityLog(buffer, clock).observe(MINE, "code-server", b"/stable-abc")

    async def sated() -> bool:
        for _ in range(1000):
            watch.message(BINARY, len(KEEP_ALIVE), KEEP_ALIVE)
        return watch.is_saturated()

    await until(sated, "enough was seen of it for now")

    async def hungry() -> bool:
        return not watch.is_saturated()

    await until(hungry, "the next second is worth a look again")
