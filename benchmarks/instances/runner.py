"""Run the rounds: first single workspaces, all contestants in each round; then many at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from benchmarks.instances.contestants import Contestant, Failed
from benchmarks.instances.results import Burst, Results
from benchmarks.report import Report
from codehub.domain.states import Operation

Action = Callable[[str, int], Awaitable[None]]
Around = Callable[[str, Operation], AbstractAsyncContextManager[None]]


def around_nothing(_name: str, _operation: Operation) -> AbstractAsyncContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class TimeLimits:
    """Seconds since the beginning that a next round, as long as the longest so far, must not exceed."""

    single: float = 240
    whole: float = 540


@dataclass(frozen=True)
class Runner:
    """Runs all contestants in alternation, within time limits; `images` maps titles to references."""

    contestants: Mapping[str, Contestant]
    images: Mapping[str, str]
    report: Report
    limits: TimeLimits = TimeLimits()
    results: Results = field(default_factory=Results)
    began: float = field(default_factory=time.monotonic)

    async def run_alone(self, rounds: int, around: Around = around_nothing) -> None:
        """Start and stop one workspace, each operation in the context of `around`."""
        await self._prepare(self.contestants, range(1))
        self.report.log("warming up")
        await self._run_round(Results(), 0, around_nothing)
        await self._rounds(
            "round", rounds, self.limits.single, lambda number: self._run_round(self.results, number, around)
        )

    async def run_bursts(
        self, burst: int, rounds: int, names: Sequence[str] = (), around: Around = around_nothing
    ) -> None:
        """Start and stop many at once, of these contestants or of all, each in the context of `around`."""
        chosen = names or list(self.contestants)
        self.report.log(f"creating homes for {burst} workspaces")
        await self._prepare(chosen, range(1, burst))

        async def run_round(_number: int) -> None:
            for image in self.images:
                for name in chosen:
                    self.report.log(f"{burst} with {image}: {name}")
                    await self._run_burst(image, name, burst, around)

        await self._rounds("all at once", rounds, self.limits.whole, run_round)

    async def _prepare(self, names: Sequence[str] | Mapping[str, Contestant], numbers: range) -> None:
        for name in names:
            for reference in self.images.values():
                for number in numbers:
                    await self.contestants[name].prepare(reference, number)

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

    async def _run_round(self, results: Results, number: int, around: Around) -> None:
        """Reverse the order in every other round, so that no contestant always follows the same one."""
        order = list(self.contestants)[:: -1 if number % 2 else 1]
        for image in self.images:
            for name in order:
                await self._run_turn(results, image, name, around)

    async def _run_turn(self, results: Results, image: str, name: str, around: Around) -> None:
        contestant, reference, started = self.contestants[name], self.images[image], True
        for operation, action in _actions(contestant).items():
            async with around(name, operation):
                seconds = await self._timed(name, action, reference, 0)
                # Stopping a workspace that never started would be too fast.
                started = started and seconds is not None
                results.seconds[image, name, operation].append(seconds if started else None)
                if started:
                    parts = await contestant.step_seconds(reference, 0, operation)
                    results.add_parts((image, name, operation), parts)

    async def _run_burst(self, image: str, name: str, burst: int, around: Around) -> None:
        succeeded = [True] * burst
        for operation, action in _actions(self.contestants[name]).items():
            async with around(name, operation):
                began = time.perf_counter()
                timed = (self._timed(name, action, self.images[image], number) for number in range(burst))
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
