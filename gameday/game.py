"""A game: people use CodeHub, faults break it, and checks watch."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

from codehub.domain.states import Phase
from codehub.words import PHASES
from gameday.checks.checker import check_everything
from gameday.checks.findings import Findings, Invariant
from gameday.checks.watcher import Watcher
from gameday.faults.fault import FaultRecord
from gameday.faults.loop import inject_faults
from gameday.options import Options
from gameday.people.echoes import EchoClient
from gameday.people.followers import Follower
from gameday.people.journal import Journal
from gameday.people.person import make_person
from gameday.stage.setup import User
from gameday.stage.stage import Stage

WARM_UP_SECONDS = 5.0
RECOVERY_SECONDS = 120.0
PROGRESS_SECONDS = 1.0
SECONDS_PER_MINUTE = 60

Say = Callable[[str], None]


class Game:
    """One game on one stage, and its results so far."""

    def __init__(self, stage: Stage, options: Options) -> None:
        self.stage = stage
        self.options = options
        self.findings = Findings(stage.clock)
        self.journal = Journal()
        self.tally: Counter[str] = Counter()
        self.faults: list[FaultRecord] = []
        self._missed_faults = 0
        self.faults_ended = 0.0
        self.remarks: list[str] = []
        self.is_complete = False
        self._watcher = Watcher(stage, self.findings)
        self._followers = {
            each.user_id: Follower(stage.url, each.token, self.findings, self.tally) for each in stage.users
        }

    async def play(self, say: Say, show: Say) -> None:
        """Warm up, inject faults, recover, check."""
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watcher.run(ended))
            group.create_task(self._show_progress(ended, show))
            for follower in self._followers.values():
                group.create_task(follower.run(ended))
            await self._run_people_and_faults(say)
            await self._recover_and_check(say)
            ended.set()
        self.is_complete = True

    async def _run_people_and_faults(self, say: Say) -> None:
        stop_people, stop_faults = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as people:
            for user in self.stage.users:
                self._start_person(user, people, stop_people)
            say("People are using CodeHub. Warming up ...")
            await asyncio.sleep(WARM_UP_SECONDS)
            say(f"Breaking things for {self.options.minutes:g} minutes ...")
            timer = asyncio.get_running_loop().call_later(
                self.options.minutes * SECONDS_PER_MINUTE, stop_faults.set
            )
            random = Random(f"{self.options.seed}:faults")  # noqa: S311 (no secret)
            try:
                await inject_faults(
                    self.stage,
                    random,
                    stop_faults,
                    self._record_fault,
                    self.options.faults_per_second,
                    dockerd=self.options.dockerd,
                )
            finally:
                timer.cancel()
                self.faults_ended = self.stage.clock()
                stop_people.set()

    def _record_fault(self, fault: FaultRecord) -> None:
        if fault.happened:
            self.faults.append(fault)
        else:
            self._missed_faults += 1

    async def _recover_and_check(self, say: Say) -> None:
        say(f"{len(self.faults)} faults have ended. Waiting until every part is ready ...")
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stage.wait_ready(), RECOVERY_SECONDS)
        late = [
            f"{part} is not ready {RECOVERY_SECONDS:.0f} s after the last fault."
            for part in self.stage.unavailable()
        ]
        self.findings.record(Invariant.CONVERGED, late)
        self._remark_on_disk()
        summary = await check_everything(self.stage, self.journal, self._followers, self.findings, say)
        convergence = summary.convergence
        watcher = self._watcher
        self.remarks += [
            f"{self._missed_faults} more faults found nothing to break.",
            f"{convergence.workspaces} workspaces converged within {convergence.seconds:.1f} s.",
            f"{convergence.recovered} of them had failed and continued after a retry.",
            f"The watcher checked {watcher.polls:,} times; outages prevented {watcher.missed:,} more checks.",
            f"{summary.aborted_uploads} unfinished uploads were left for the collector.",
        ]

    def _remark_on_disk(self) -> None:
        if self.stage.disk is None:
            self.remarks.append("The disk was never full, because no small disk could be mounted.")

    def _start_person(self, user: User, group: asyncio.TaskGroup, until: asyncio.Event) -> None:
        follower = self._followers[user.user_id]

        def running() -> Iterator[str]:
            return (each for each, view in follower.workspaces().items() if view["phase"] == Phase.RUNNING)

        url, seed = self.stage.url, self.options.seed
        person = make_person(url, user, seed, journal=self.journal, findings=self.findings, tally=self.tally)
        random = Random(f"{seed}:echoes:{user.name}")  # noqa: S311 (no secret)
        echoes = EchoClient(url, user.token, running, self.findings, self.tally, random)
        group.create_task(person.run(until))
        group.create_task(echoes.run(until))

    async def _show_progress(self, until: asyncio.Event, show: Say) -> None:
        while not until.is_set():
            violations = f", {len(self.findings.violations)} violations" if self.findings.violations else ""
            show(f"{self.stage.clock():.0f} s: {len(self.faults)} faults{violations}; {self._phase_counts()}")
            with suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), PROGRESS_SECONDS)

    def _phase_counts(self) -> str:
        counts = self._watcher.phases
        shown = (f"{counts[phase]} {words.label.lower()}" for phase, words in PHASES.items() if counts[phase])
        return ", ".join(shown) or "no workspaces yet"
