"""Run the rounds: first single workspaces, all contestants in each round; then many at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.docker.results import Burst, Results
from benchmarks.docker.testbed import IMAGES, Contestant, Failed
from benchmarks.report import Report
from codehub.domain.states import Operation

# Start no round that would exceed these limits if it took as long as the longest so far.
SINGLE_SECONDS = 240
WHOLE_SECONDS = 540
Action = Callable[[str, int], Awaitable[None]]


@dataclass(frozen=True)
class Runner:
    """Runs all contestants in alternation, within a time limit."""

    contestants: Mapping[str, Contestant]
    report: Report
    results: Results = field(default_factory=Results)
    began: float = field(default_factory=time.monotonic)

    async def run_alone(self, rounds: int) -> None:
        await self._prepare(range(1))
        self.report.log("warming up")
        await self._run_round(Results(), 0)
        await self._rounds(
            "round", rounds, SINGLE_SECONDS, lambda number: self._run_round(self.results, number)
        )

    async def run_bursts(self, burst: int, rounds: int) -> None:
        self.report.log(f"creating homes for {burst} workspaces")
        await self._prepare(range(1, burst))
        await self._rounds("all at once", rounds, WHOLE_SECONDS, lambda _: self._run_burst_round(burst))

    async def _prepare(self, numbers: range) -> None:
        for contestant in self.contestants.values():
            for reference in IMAGES.values():
                for number in numbers:
                    await contestant.prepare(reference, number)

    async def _rounds(
        self, what: str, count: int, seconds: float, run: Callable[[int], Awaitable[None]]
    ) -> None:
        longest = 0.0
        for number in range(1, count + 1):
            start = time.monotonic()
            if start + longest > self.began + seconds:
                self.report.log(f"{what}: time for only {number - 1} of {count}")
                return
            self.report.log(f"{what} {number} of {count}")
            await run(number)
            longest = max(longest, time.monotonic() - start)

    async def _run_round(self, results: Results, number: int) -> None:
        """Reverse the order in every other round, so that no contestant always follows the same one."""
        order = list(self.contestants)[:: -1 if number % 2 else 1]
        for image in IMAGES:
            for name in order:
                await self._run_turn(results, image, name)

    async def _run_turn(self, results: Results, image: str, name: str) -> None:
        contestant, reference, started = self.contestants[name], IMAGES[image], True
        for operation, action in _actions(contestant).items():
            seconds = await self._timed(name, action, reference, 0)
            # Stopping a workspace that never started would be too fast.
            started = started and seconds is not None
            results.seconds[image, name, operation].append(seconds if started else None)
            if started:
                parts = await contestant.step_seconds(reference, 0, operation)
                results.add_parts((image, name, operation), parts)

    async def _run_burst_round(self, burst: int) -> None:
        for image in IMAGES:
            for name in self.contestants:
                self.report.log(f"{burst} with {image}: {name}")
                await self._run_burst(image, name, burst)

    async def _run_burst(self, image: str, name: str, burst: int) -> None:
        succeeded = [True] * burst
        for operation, action in _actions(self.contestants[name]).items():
            began = time.perf_counter()
            timed = (self._timed(name, action, IMAGES[image], number) for number in range(burst))
            each = await asyncio.gather(*timed)
            whole = time.perf_counter() - began
            # Here too, a workspace that never started does not count as stopped.
            succeeded = [before and now is not None for before, now in zip(succeeded, each, strict=True)]
            seconds = [value for value, counts in zip(each, succeeded, strict=True) if counts and value]
            self.results.bursts[image, name, operation].append(Burst(whole, seconds, burst))

    async def _timed(self, name: str, action: Action, reference: str, number: int) -> float | None:
        """Return the seconds, or None if the contestant failed."""
        began = time.perf_counter()
        try:
            await action(reference, number)
        except Failed as error:
            self.report.log(f"{name}: {error}")
            return None
        return time.perf_counter() - began


def _actions(contestant: Contestant) -> dict[Operation, Action]:
    return {Operation.STARTING: contestant.start, Operation.STOPPING: contestant.stop}
