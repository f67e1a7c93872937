"""The workloads, and what they cost a contestant."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psutil
import uvloop

from benchmarks.proxy.http_load import Outcome, load_pages
from benchmarks.proxy.testbed import Contestant, Testbed
from benchmarks.proxy.upstream import LARGE, SIZES, SMALL
from benchmarks.proxy.websocket_load import SMALL_MESSAGE, MessagePattern, exchange_messages, idle_websockets
from benchmarks.report import MEGABYTE
from testkit.processes import process_tree

MICROSECONDS = 1e6
BIG_MESSAGE = 64 * 1024
Load = Callable[[Testbed, Contestant, int], Awaitable[Outcome]]


@dataclass(frozen=True)
class Workload:
    """`amount` is the number of units per response or message; `bulk` workloads also run on nginx-64k."""

    title: str
    unit: str
    load: Load
    amount: float = 1.0
    bulk: bool = False
    websocket: bool = False


@dataclass(frozen=True)
class Figures:
    """Units per second, latency in µs if known, and CPU in µs per unit if the contestant has a process."""

    rate: float
    p50: float | None
    p99: float | None
    cpu: float | None

    @property
    def busy_percent(self) -> float | None:
        """Return the share of one core; well below 100, something else was the bottleneck."""
        return None if self.cpu is None else self.cpu * self.rate / MICROSECONDS * 100


@dataclass(frozen=True)
class Memory:
    """Resident bytes of all processes of a contestant."""

    at_start: int
    with_websockets: int
    websockets: int

    @property
    def per_websocket(self) -> float:
        return (self.with_websockets - self.at_start) / self.websockets


def pages(connections: int, name: str) -> Load:
    async def load(testbed: Testbed, contestant: Contestant, seconds: int) -> Outcome:
        return await load_pages(testbed.page(contestant.pages_port, name), connections, seconds)

    return load


def messages(pattern: MessagePattern) -> Load:
    async def load(testbed: Testbed, contestant: Contestant, seconds: int) -> Outcome:
        # uvloop is faster, but the benchmark itself cannot use it: it starts servers as other users.
        return await asyncio.to_thread(uvloop.run, exchange_messages(testbed, contestant, pattern, seconds))

    return load


ONE, MANY, CROWD = "1 KB, 1 connection", "1 KB, 32 connections", "1 KB, 256 connections"
LARGE_PAGES = "1 MB, 8 connections"
WORKLOADS = (
    Workload(ONE, "req", pages(1, SMALL)),
    Workload(MANY, "req", pages(32, SMALL)),
    Workload(CROWD, "req", pages(256, SMALL)),
    Workload(LARGE_PAGES, "MB", pages(8, LARGE), SIZES[LARGE] / MEGABYTE, bulk=True),
    Workload(
        "WebSocket, 64 B round trip, 1 connection",
        "msg",
        messages(MessagePattern(1, SMALL_MESSAGE, 1)),
        websocket=True,
    ),
    Workload(
        "WebSocket, 64 B round trip, 32 connections",
        "msg",
        messages(MessagePattern(32, SMALL_MESSAGE, 1)),
        websocket=True,
    ),
    Workload(
        "WebSocket, 64 B, 32 connections, 16 in flight on each",
        "msg",
        messages(MessagePattern(32, SMALL_MESSAGE, 16)),
        websocket=True,
    ),
    Workload(
        "WebSocket, 64 KB, 8 connections, 2 in flight on each",
        "MB",
        messages(MessagePattern(8, BIG_MESSAGE, 2)),
        BIG_MESSAGE / MEGABYTE,
        bulk=True,
        websocket=True,
    ),
)


async def measure(workload: Workload, testbed: Testbed, contestant: Contestant, seconds: int) -> Figures:
    before = cpu_seconds(contestant)
    outcome = await workload.load(testbed, contestant, seconds)
    spent = cpu_seconds(contestant) - before
    amount = outcome.count * workload.amount
    cpu = spent / amount * MICROSECONDS if contestant.pid else None
    return Figures(amount / outcome.seconds, outcome.p50, outcome.p99, cpu)


async def measure_memory(testbed: Testbed, contestant: Contestant, websockets: int) -> Memory:
    """Call it for new processes: reusable memory from an earlier load would hide what WebSockets need."""
    before = resident_bytes(contestant)
    async with idle_websockets(testbed, contestant, websockets):
        return Memory(before, resident_bytes(contestant), websockets)


def cpu_seconds(contestant: Contestant) -> float:
    times = [process.cpu_times() for process in _processes(contestant)]
    return sum(each.user + each.system for each in times)


def resident_bytes(contestant: Contestant) -> int:
    return sum(process.memory_info().rss for process in _processes(contestant))


def _processes(contestant: Contestant) -> list[psutil.Process]:
    return process_tree(contestant.pid) if contestant.pid else []
