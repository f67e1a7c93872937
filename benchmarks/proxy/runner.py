"""The rounds: every workload with one contestant after the other."""

import resource
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.api.load_generator import Refused, ask_for
from benchmarks.proxy.results import Results
from benchmarks.proxy.testbed import Contestant, Stage
from benchmarks.proxy.upstream import SMALL
from benchmarks.proxy.workloads import WORKLOADS, Workload, measure, measure_memory, resident_bytes
from benchmarks.report import Report

Result = TypeVar("Result")
# With another round that would take as long as the last, it would be over.
BUDGET_SECONDS = 480
WARM_UP_CONNECTIONS = 32
WARM_UP_SECONDS = 0.3
IDLE_WEBSOCKETS = 2000
# Big buffers are only for what is big.
BULK_ONLY = "nginx-64k"


@dataclass(frozen=True)
class Game:
    """All contestants on one stage, for so many seconds at a time."""

    stage: Stage
    contestants: Mapping[str, Contestant]
    seconds: int
    report: Report
    results: Results = field(default_factory=Results)

    async def play(self, rounds: int, began: float) -> Results:
        """`began` is when the whole benchmark did, by the monotonic clock."""
        await self._warm_up()
        longest = 0.0
        for number in range(1, rounds + 1):
            start = time.monotonic()
            if start + longest > began + BUDGET_SECONDS:
                self.report.say(f"no time for more than {number - 1} of {rounds} rounds")
                break
            self.report.say(f"round {number} of {rounds}")
            for workload in WORKLOADS:
                await self._take_turns(workload)
            longest = max(longest, time.monotonic() - start)
        for name in self.results.memory:
            self.results.loaded_bytes[name] = resident_bytes(self.contestants[name])
        return self.results

    async def _warm_up(self) -> None:
        websockets = min(IDLE_WEBSOCKETS, _file_limit() // 3)
        for name, contestant in self.contestants.items():
            await ask_for(self.stage.page(contestant.pages_port, SMALL), WARM_UP_CONNECTIONS, WARM_UP_SECONDS)
            if contestant.pid:
                self.report.say(f"{name}: {websockets} idle WebSockets")
                memory = await self._try(name, measure_memory(self.stage, contestant, websockets))
                if memory:
                    self.results.memory[name] = memory

    async def _take_turns(self, workload: Workload) -> None:
        for name, contestant in self.contestants.items():
            if workload.bulk or name != BULK_ONLY:
                work = measure(workload, self.stage, contestant, self.seconds)
                figures = await self._try(f"{name}, {workload.title}", work)
                self.results.rounds[workload.title, name].append(figures)

    async def _try(self, what: str, work: Awaitable[Result]) -> Result | None:
        """None if the contestant could not do it; the others go on."""
        result = None
        try:
            result = await work
        except* (OSError, Refused, TimeoutError) as failures:
            self.report.say(f"{what}: {failures.exceptions[0]}")
        return result


def raise_file_limit() -> None:
    """For us and whom we start."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_file_limit(), _file_limit()))


def _file_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]
