"""Live events: the delay until a change reaches a browser, and the cost of idle streams."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import psutil

from benchmarks.api.load_generator import Target
from benchmarks.api.population import ApiUser
from benchmarks.report import Cell, Report, Section, milliseconds, percentile, verdict
from benchmarks.servers import ApiProcess
from codehub.bootstrap import database_url_of, open_bus
from codehub.db.session import Connection, connect
from codehub.domain.conditions import WorkspaceId
from testkit.deployment import Deployment
from worker.relay import EventRelay

GOAL_SECONDS = 1.0
TIMEOUT_SECONDS = 30.0
CONNECTING_AT_ONCE = 25
# Random pauses, so that changes do not overlap and are not in step with a timer.
PAUSE_SECONDS = (0.05, 0.15)
EVENT_END = b"\n\n"
CHANGE = "UPDATE workspaces SET description = $1 WHERE id = $2"
COLUMNS = ("clients", "changes", "first p50 ms", "last p50 ms", "last p99 ms", "worst ms")
LEGEND = ("From sending the UPDATE until the first and the last client of its owner have the event.",)


class EventStream(asyncio.Protocol):
    """An open stream; records when each change arrived."""

    def __init__(self, request: bytes) -> None:
        self.connected = asyncio.Event()
        self.seen: dict[bytes, float] = {}
        self._request = request
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self._buffer += data
        while (end := self._buffer.find(EVENT_END)) >= 0:
            self._handle(bytes(self._buffer[:end]), now)
            del self._buffer[: end + len(EVENT_END)]

    def _handle(self, event: bytes, now: float) -> None:
        if b"event: snapshot" in event:
            self.connected.set()
        elif b"event: workspace_updated" in event:
            marker = event.partition(b'"description":"')[2].partition(b'"')[0]
            self.seen[marker] = now


@dataclass
class OpenStreams:
    """The open streams of each user."""

    streams: dict[ApiUser, list[EventStream]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.streams.values()))


@dataclass(frozen=True)
class Delay:
    """How long a change took to reach the first and the last stream of its owner."""

    first: float
    last: float


@dataclass(frozen=True)
class EventSize:
    """The extent of a run."""

    clients: int
    changes: int
    idle_seconds: float


async def measure_events(
    deployment: Deployment, api: ApiProcess, users: Sequence[ApiUser], size: EventSize, report: Report
) -> None:
    process = psutil.Process(api.pid)
    async with _relay(deployment), _connection(deployment) as connection:
        report.log("live events, one client")
        async with open_streams(api, users[:1], 1) as one:
            single = await _delays(connection, one, size.changes)
        before = process.memory_info().rss
        report.log(f"live events, {size.clients} clients")
        async with open_streams(api, users, size.clients) as many:
            many_delays = await _delays(connection, many, size.changes)
            report.log(f"{many.size} clients idle for {size.idle_seconds:.0f} s")
            cpu = await _idle_cpu(process, size.idle_seconds)
            growth = process.memory_info().rss - before
    _add_delays(single, many_delays, size, len(users), report)
    rows: list[Sequence[Cell]] = [
        ("memory per client, kB", round(growth / size.clients / 1000, 1)),
        ("CPU of the API while they idle, % of a core", round(cpu * 100, 2)),
    ]
    report.add(Section(f"{size.clients} idle clients", ("", "value"), rows))


@asynccontextmanager
async def open_streams(api: ApiProcess, users: Sequence[ApiUser], clients: int) -> AsyncIterator[OpenStreams]:
    """Open this many streams, evenly for all users, and wait for their snapshots."""
    opened, slots = OpenStreams(), asyncio.Semaphore(CONNECTING_AT_ONCE)
    async with AsyncExitStack() as stack:

        async def connect_user(user: ApiUser) -> None:
            async with slots, asyncio.timeout(TIMEOUT_SECONDS):
                transport, stream = await _listen(api, user)
                stack.callback(transport.close)
                await stream.connected.wait()
            opened.streams.setdefault(user, []).append(stream)

        async with asyncio.TaskGroup() as tasks:
            for number in range(clients):
                tasks.create_task(connect_user(users[number % len(users)]))
        yield opened


async def _listen(api: ApiProcess, user: ApiUser) -> tuple[asyncio.BaseTransport, EventStream]:
    request = Target(api.port, "/api/v1/events", user.headers | {"Accept": "text/event-stream"}).encode()
    loop = asyncio.get_running_loop()
    return await loop.create_connection(lambda: EventStream(request), "127.0.0.1", api.port)


async def _delays(connection: Connection, opened: OpenStreams, changes: int) -> list[Delay]:
    generator = random.Random(changes)  # noqa: S311 (the same in every run)
    users = list(opened.streams)
    delays = []
    for number in range(changes):
        user = generator.choice(users)
        await asyncio.sleep(generator.uniform(*PAUSE_SECONDS))
        workspace_id = generator.choice(user.workspaces)
        delays.append(await _delay(connection, workspace_id, opened.streams[user], f"change-{number}"))
    return delays


async def _delay(
    connection: Connection, workspace_id: WorkspaceId, streams: Sequence[EventStream], marker: str
) -> Delay:
    began = time.perf_counter()
    await connection.execute(CHANGE, marker, workspace_id)
    key = marker.encode()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        # The streams record the times, so polling does not affect them.
        while not all(key in stream.seen for stream in streams):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    times = [stream.seen.pop(key) for stream in streams]
    return Delay(min(times) - began, max(times) - began)


async def _idle_cpu(process: psutil.Process, seconds: float) -> float:
    """Return the share of one core."""
    before, began = process.cpu_times(), time.perf_counter()
    await asyncio.sleep(seconds)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / (time.perf_counter() - began)


@asynccontextmanager
async def _relay(deployment: Deployment) -> AsyncIterator[None]:
    """Run the event relay, which is part of a worker."""
    async with open_bus(deployment.settings) as bus:
        relaying = asyncio.create_task(EventRelay(database_url_of(deployment.settings), bus).run())
        try:
            yield
        finally:
            relaying.cancel()
            with suppress(asyncio.CancelledError):
                await relaying


@asynccontextmanager
async def _connection(deployment: Deployment) -> AsyncIterator[Connection]:
    connection = await connect(database_url_of(deployment.settings))
    try:
        yield connection
    finally:
        await connection.close()


def _add_delays(single: list[Delay], many: list[Delay], size: EventSize, users: int, report: Report) -> None:
    worst = max(delay.last for delay in (*single, *many))
    remarks = (
        *LEGEND,
        f"{size.clients} clients belong to {users} users.",
        f"within {GOAL_SECONDS:.0f} s: {verdict(worst <= GOAL_SECONDS)} (worst {milliseconds(worst)} ms)",
    )
    rows = [_row(1, single), _row(size.clients, many)]
    report.add(Section("A change reaches its owner's clients", COLUMNS, rows, remarks))


def _row(clients: int, delays: list[Delay]) -> Sequence[Cell]:
    first, last = [each.first for each in delays], [each.last for each in delays]
    return (
        clients,
        len(delays),
        milliseconds(percentile(first, 50)),
        milliseconds(percentile(last, 50)),
        milliseconds(percentile(last, 99)),
        milliseconds(max(last)),
    )
