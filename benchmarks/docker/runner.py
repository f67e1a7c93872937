"""The turns: one workspace after the other, everybody in every round; then many at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.docker.results import Crowd, Results
from benchmarks.docker.testbed import IMAGES, Contestant, Failed
from benchmarks.report import Report
from codehub.domain.states import Operation

# With another round that would take as long as the longest so far, it would be over.
SINGLE_SECONDS = 240
WHOLE_SECONDS = 540
Act = Callable[[str, int], Awaitable[None]]


@dataclass(frozen=True)
class Game:
    """All contestants, with the time by which everything has to end."""

    contestants: Mapping[str, Contestant]
    report: Report
    results: Results = field(default_factory=Results)
    began: float = field(default_factory=time.monotonic)

    async def play_alone(self, rounds: int) -> None:
        await self._prepare(range(1))
        self.report.say("warming up")
        await self._take_turns(Results(), 0)
        await self._rounds(
            "round", rounds, SINGLE_SECONDS, lambda number: self._take_turns(self.results, number)
        )

    async def play_at_once(self, crowd: int, rounds: int) -> None:
        self.report.say(f"homes for {crowd} at once")
        await self._prepare(range(1, crowd))
        await self._rounds("all at once", rounds, WHOLE_SECONDS, lambda _: self._take_crowds(crowd))

    async def _prepare(self, numbers: range) -> None:
        for contestant in self.contestants.values():
            for reference in IMAGES.values():
                for number in numbers:
                    await contestant.prepare(reference, number)

    async def _rounds(
        self, what: str, count: int, seconds: float, play: Callable[[int], Awaitable[None]]
    ) -> None:
        longest = 0.0
        for number in range(1, count + 1):
            start = time.monotonic()
            if start + longest > self.began + seconds:
                self.report.say(f"{what}: no time for more than {number - 1} of {count}")
                return
            self.report.say(f"{what} {number} of {count}")
            await play(number)
            longest = max(longest, time.monotonic() - start)

    async def _take_turns(self, results: Results, number: int) -> None:
        """Back and forth, so that nobody always has the same one's traces before him."""
        order = list(self.contestants)[:: -1 if number % 2 else 1]
        for image in IMAGES:
            for name in order:
                await self._take_turn(results, image, name)

    async def _take_turn(self, results: Results, image: str, name: str) -> None:
        contestant, reference, started = self.contestants[name], IMAGES[image], True
        for operation, act in _acts(contestant).items():
            seconds = await self._timed(name, act, reference, 0)
            # What was never there is quickly gone.
            started = started and seconds is not None
            results.seconds[image, name, operation].append(seconds if started else None)
            if started:
                parts = await contestant.look_back(reference, 0, operation)
                results.add_parts((image, name, operation), parts)

    async def _take_crowds(self, crowd: int) -> None:
        for image in IMAGES:
            for name in self.contestants:
                self.report.say(f"{crowd} with {image}: {name}")
                await self._take_crowd(image, name, crowd)

    async def _take_crowd(self, image: str, name: str, crowd: int) -> None:
        through = [True] * crowd
        for operation, act in _acts(self.contestants[name]).items():
            began = time.perf_counter()
            timed = (self._timed(name, act, IMAGES[image], number) for number in range(crowd))
            each = await asyncio.gather(*timed)
            whole = time.perf_counter() - began
            # Here too, what was never there does not count as gone.
            through = [before and now is not None for before, now in zip(through, each, strict=True)]
            seconds = [value for value, counts in zip(each, through, strict=True) if counts and value]
            self.results.crowds[image, name, operation].append(Crowd(whole, seconds, crowd))

    async def _timed(self, name: str, act: Act, reference: str, number: int) -> float | None:
        """None if the contestant could not do it; the others go on."""
        began = time.perf_counter()
        try:
            await act(reference, number)
        except Failed as error:
            self.report.say(f"{name}: {error}")
            return None
        return time.perf_counter() - began


def _acts(contestant: Contestant) -> dict[Operation, Act]:
    return {Operation.STARTING: contestant.start, Operation.STOPPING: contestant.stop}
