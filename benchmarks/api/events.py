"""Live events: how soon a change reaches a browser, and what browsers cost that only listen."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import psutil

from benchmarks.api.load_generator import Target
from benchmarks.api.population import ApiProcess, Member
from benchmarks.report import Cell, Report, Section, milliseconds, percentile, verdict
from codehub.bootstrap import database_url_of, open_bus
from codehub.db.session import Connection, connect
from codehub.domain.conditions import WorkspaceId
from testkit.deployment import Deployment
from worker.relay import EventRelay

GOAL_SECONDS = 1.0
LONGEST_SECONDS = 30.0
CONNECTING_AT_ONCE = 25
# Apart, so that most changes come in a quiet time, and never in step with anybody's timer.
PAUSE_SECONDS = (0.05, 0.15)
EVENT_END = b"\n\n"
CHANGE = "UPDATE workspaces SET description = $1 WHERE id = $2"
COLUMNS = ("clients", "changes", "first p50 ms", "last p50 ms", "last p99 ms", "worst ms")
LEGEND = ("From sending the UPDATE until the first and the last client of its owner have the event.",)


class Listener(asyncio.Protocol):
    """An open stream, which notes when a text that it waits for has come."""

    def __init__(self, request: bytes) -> None:
        self.greeted = asyncio.Event()
        self.seen: dict[bytes, float] = {}
        self._request = request
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self._buffer += data
        while (end := self._buffer.find(EVENT_END)) >= 0:
            self._hear(bytes(self._buffer[:end]), now)
            del self._buffer[: end + len(EVENT_END)]

    def _hear(self, event: bytes, now: float) -> None:
        if b"event: snapshot" in event:
            self.greeted.set()
        elif b"event: workspace_updated" in event:
            marker = event.partition(b'"description":"')[2].partition(b'"')[0]
            self.seen[marker] = now


@dataclass
class Audience:
    """The streams of each member."""

    listeners: dict[Member, list[Listener]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.listeners.values()))


@dataclass(frozen=True)
class Delay:
    """How long a change took to the first and to the last of those who hear of it."""

    first: float
    last: float


@dataclass(frozen=True)
class EventSize:
    """How many of everything."""

    clients: int
    changes: int
    idle_seconds: float


async def measure_events(
    deployment: Deployment, api: ApiProcess, members: Sequence[Member], size: EventSize, report: Report
) -> None:
    process = psutil.Process(api.pid)
    async with _relay(deployment), _connection(deployment) as connection:
        report.say("live events, one client")
        async with audience(api, members[:1], 1) as one:
            single = await _delays(connection, one, size.changes)
        before = process.memory_info().rss
        report.say(f"live events, {size.clients} clients")
        async with audience(api, members, size.clients) as many:
            crowd = await _delays(connection, many, size.changes)
            report.say(f"{many.size} clients idle for {size.idle_seconds:.0f} s")
            cpu = await _idle_cpu(process, size.idle_seconds)
            growth = process.memory_info().rss - before
    _tell(single, crowd, size, len(members), report)
    rows: list[Sequence[Cell]] = [
        ("memory per client, kB", round(growth / size.clients / 1000, 1)),
        ("CPU of the API while they idle, % of a core", round(cpu * 100, 2)),
    ]
    report.add(Section(f"{size.clients} idle clients", ("", "value"), rows))


@asynccontextmanager
async def audience(api: ApiProcess, members: Sequence[Member], clients: int) -> AsyncIterator[Audience]:
    """So many open streams, shared out among the members, all with their snapshot."""
    found, places = Audience(), asyncio.Semaphore(CONNECTING_AT_ONCE)
    async with AsyncExitStack() as stack:

        async def join(member: Member) -> None:
            async with places, asyncio.timeout(LONGEST_SECONDS):
                transport, listener = await _listen(api, member)
                stack.callback(transport.close)
                await listener.greeted.wait()
            found.listeners.setdefault(member, []).append(listener)

        async with asyncio.TaskGroup() as tasks:
            for number in range(clients):
                tasks.create_task(join(members[number % len(members)]))
        yield found


async def _listen(api: ApiProcess, member: Member) -> tuple[asyncio.BaseTransport, Listener]:
    request = Target(api.port, "/api/v1/events", member.headers | {"Accept": "text/event-stream"}).encode()
    loop = asyncio.get_running_loop()
    return await loop.create_connection(lambda: Listener(request), "127.0.0.1", api.port)


async def _delays(connection: Connection, crowd: Audience, changes: int) -> list[Delay]:
    chance = random.Random(changes)  # noqa: S311 (the same in every run)
    members = list(crowd.listeners)
    found = []
    for number in range(changes):
        member = chance.choice(members)
        await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
        workspace_id = chance.choice(member.workspaces)
        found.append(await _delay(connection, workspace_id, crowd.listeners[member], f"change-{number}"))
    return found


async def _delay(
    connection: Connection, workspace_id: WorkspaceId, listeners: Sequence[Listener], marker: str
) -> Delay:
    began = time.perf_counter()
    await connection.execute(CHANGE, marker, workspace_id)
    key = marker.encode()
    async with asyncio.timeout(LONGEST_SECONDS):
        # The times are taken by the listeners, however seldom this looks.
        while not all(key in listener.seen for listener in listeners):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    times = [listener.seen.pop(key) for listener in listeners]
    return Delay(min(times) - began, max(times) - began)


async def _idle_cpu(process: psutil.Process, seconds: float) -> float:
    """Of one core."""
    before, began = process.cpu_times(), time.perf_counter()
    await asyncio.sleep(seconds)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / (time.perf_counter() - began)


@asynccontextmanager
async def _relay(deployment: Deployment) -> AsyncIterator[None]:
    """What a worker runs beside its workflows."""
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


def _tell(single: list[Delay], crowd: list[Delay], size: EventSize, members: int, report: Report) -> None:
    worst = max(delay.last for delay in (*single, *crowd))
    remarks = (
        *LEGEND,
        f"{size.clients} clients belong to {members} users.",
        f"within {GOAL_SECONDS:.0f} s: {verdict(worst <= GOAL_SECONDS)} (worst {milliseconds(worst)} ms)",
    )
    rows = [_row(1, single), _row(size.clients, crowd)]
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
