"""Run the rounds: every workload with one contestant after the other."""

import resource
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.api.load_generator import BadResponse, send_requests
from benchmarks.proxy.results import Results
from benchmarks.proxy.testbed import Contestant, Testbed
from benchmarks.proxy.upstream import SMALL
from benchmarks.proxy.workloads import WORKLOADS, Workload, measure, measure_memory, resident_bytes
from benchmarks.report import Report

Result = TypeVar("Result")
# Start no round that would exceed this limit if it took as long as the longest so far.
BUDGET_SECONDS = 480
WARM_UP_CONNECTIONS = 32
WARM_UP_SECONDS = 0.3
IDLE_WEBSOCKETS = 2000
# Large buffers matter only for large bodies.
BULK_ONLY = "nginx-64k"


@dataclass(frozen=True)
class Runner:
    """Runs all contestants in alternation, each measurement for `seconds`."""

    testbed: Testbed
    contestants: Mapping[str, Contestant]
    seconds: int
    report: Report
    results: Results = field(default_factory=Results)

    async def run(self, rounds: int, began: float) -> Results:
        """Run the rounds; `began` is the monotonic time when the benchmark started."""
        await self._warm_up()
        longest = 0.0
        for number in range(1, rounds + 1):
            start = time.monotonic()
            if start + longest > began + BUDGET_SECONDS:
                self.report.log(f"time for only {number - 1} of {rounds} rounds")
                break
            self.report.log(f"round {number} of {rounds}")
            for workload in WORKLOADS:
                await self._run_workload(workload)
            longest = max(longest, time.monotonic() - start)
        for name in self.results.memory:
            self.results.loaded_bytes[name] = resident_bytes(self.contestants[name])
        return self.results

    async def _warm_up(self) -> None:
        websockets = min(IDLE_WEBSOCKETS, _file_limit() // 3)
        for name, contestant in self.contestants.items():
            await send_requests(
                self.testbed.page(contestant.pages_port, SMALL), WARM_UP_CONNECTIONS, WARM_UP_SECONDS
            )
            if contestant.pid:
                self.report.log(f"{name}: {websockets} idle WebSockets")
                memory = await self._try(name, measure_memory(self.testbed, contestant, websockets))
                if memory:
                    self.results.memory[name] = memory

    async def _run_workload(self, workload: Workload) -> None:
        for name, contestant in self.contestants.items():
            if workload.bulk or name != BULK_ONLY:
                work = measure(workload, self.testbed, contestant, self.seconds)
                figures = await self._try(f"{name}, {workload.title}", work)
                self.results.rounds[workload.title, name].append(figures)

    async def _try(self, what: str, work: Awaitable[Result]) -> Result | None:
        """Return the result, or None if the contestant failed."""
        result = None
        try:
            result = await work
        except* (OSError, BadResponse, TimeoutError) as failures:
            self.report.log(f"{what}: {failures.exceptions[0]}")
        return result


def raise_file_limit() -> None:
    """Raise the limit of open files for this process and its children."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_file_limit(), _file_limit()))


def _file_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]
