"""A game and everybody who takes part: people, followers, faults, and those who look on."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

from codehub.domain.states import Phase
from gameday.checks.checker import check_everything
from gameday.checks.findings import Findings, Invariant
from gameday.checks.watcher import Watcher
from gameday.faults.loop import FaultRecord, break_things
from gameday.options import Options
from gameday.people.echoes import EchoClient
from gameday.people.followers import Follower
from gameday.people.journal import Journal
from gameday.people.person import make_person
from gameday.people.tally import Tally
from gameday.stage.setup import User
from gameday.stage.stage import Stage

WARM_UP_SECONDS = 5.0
HEAL_SECONDS = 120.0
SHOW_SECONDS = 1.0
SECONDS_PER_MINUTE = 60

Say = Callable[[str], None]


class Game:
    """What everybody shares, and what is known so far."""

    def __init__(self, stage: Stage, options: Options) -> None:
        self.stage = stage
        self.options = options
        self.findings = Findings(stage.clock)
        self.journal = Journal()
        self.tally = Tally()
        self.faults: list[FaultRecord] = []
        self._missed = 0
        self.faults_ended = 0.0
        self.remarks: list[str] = []
        self.is_complete = False
        self._watcher = Watcher(stage, self.findings)
        self._followers = {
            each.user_id: Follower(stage.url, each.token, self.findings, self.tally) for each in stage.users
        }

    async def play(self, say: Say, show: Say) -> None:
        """Warm up, break things, heal, check."""
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watcher.watch(ended))
            group.create_task(self._show_progress(ended, show))
            for follower in self._followers.values():
                group.create_task(follower.follow(ended))
            await self._live_through_faults(say)
            await self._heal_and_check(say)
            ended.set()
        self.is_complete = True

    async def _live_through_faults(self, say: Say) -> None:
        stop_living, stop_breaking = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as people:
            for user in self.stage.users:
                self._invite(user, people, stop_living)
            say("People have come. Warming up ...")
            await asyncio.sleep(WARM_UP_SECONDS)
            say(f"Breaking things for {self.options.minutes:g} minutes ...")
            timer = asyncio.get_running_loop().call_later(
                self.options.minutes * SECONDS_PER_MINUTE, stop_breaking.set
            )
            random = Random(f"{self.options.seed}:faults")  # noqa: S311 (a game, no secret)
            try:
                await break_things(
                    self.stage,
                    random,
                    stop_breaking,
                    self._note,
                    self.options.faults_per_second,
                    dockerd=self.options.dockerd,
                )
            finally:
                timer.cancel()
                self.faults_ended = self.stage.clock()
                stop_living.set()

    def _note(self, fault: FaultRecord) -> None:
        """One that found nothing to break is none."""
        if fault.happened:
            self.faults.append(fault)
        else:
            self._missed += 1

    async def _heal_and_check(self, say: Say) -> None:
        say(f"{len(self.faults)} faults are over. Waiting until every part is ready ...")
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stage.wait_ready(), HEAL_SECONDS)
        late = [
            f"{part} is not ready {HEAL_SECONDS:.0f} s after the last fault." for part in self.stage.away()
        ]
        self.findings.note(Invariant.CONVERGED, late)
        self._remark_on_disk()
        healing = await check_everything(self.stage, self.journal, self._followers, self.findings, say)
        arrivals = healing.arrivals
        watcher = self._watcher
        self.remarks += [
            f"{self._missed} more faults found nothing to break.",
            f"{arrivals.workspaces} workspaces were where they shall be after {arrivals.seconds:.1f} s.",
            f"{arrivals.recovered} of them had stopped with an error, and went on once told to try again.",
            f"The watcher looked {watcher.looks:,} times; an outage kept it from {watcher.missed:,} more.",
            f"{healing.aborted_uploads} unfinished uploads were left for the collector.",
        ]

    def _remark_on_disk(self) -> None:
        if self.stage.disk is None:
            self.remarks.append("The disk was never full: no small one for the homes could be mounted.")

    def _invite(self, user: User, group: asyncio.TaskGroup, until: asyncio.Event) -> None:
        follower = self._followers[user.user_id]

        def running() -> Iterator[str]:
            return (each for each, view in follower.state().items() if view["phase"] == Phase.RUNNING)

        url, seed = self.stage.url, self.options.seed
        actor = make_person(url, user, seed, journal=self.journal, findings=self.findings, tally=self.tally)
        random = Random(f"{seed}:echoes:{user.name}")  # noqa: S311 (a game, no secret)
        echoes = EchoClient(url, user.token, running, self.findings, self.tally, random)
        group.create_task(actor.live(until))
        group.create_task(echoes.talk(until))

    async def _show_progress(self, until: asyncio.Event, show: Say) -> None:
        while not until.is_set():
            phases = ", ".join(f"{count} {phase}" for phase, count in sorted(self._watcher.phases.items()))
            broken = f", {len(self.findings.violations)} violations" if self.findings.violations else ""
            show(f"{self.stage.clock():.0f} s: {len(self.faults)} faults{broken}; {phases or 'nothing yet'}")
            with suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), SHOW_SECONDS)
