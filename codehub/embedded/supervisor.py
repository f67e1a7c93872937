"""Starts child processes, restarts them after a crash and stops them in reverse order."""

import asyncio
import logging
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from codehub.embedded.child_process import (
    CannotPrepare,
    Child,
    ChildState,
    Observer,
    StartFailed,
    Status,
    rotate,
    signal_group,
    spawn,
)

STABLE_SECONDS = 60.0
FIRST_DELAY_SECONDS = 0.25
SLOW_DELAY_SECONDS = 30.0
TOO_MANY_CRASHES = 6


def crashes_in_a_row(before: int, ran_seconds: float, stable_seconds: float = STABLE_SECONDS) -> int:
    """Count this crash; a child that ran well for a while starts a new row."""
    return 1 if ran_seconds >= stable_seconds else before + 1


def is_crash_loop(crashes: int) -> bool:
    """Whether it crashed so often that a person should look."""
    return crashes >= TOO_MANY_CRASHES


def restart_delay(crashes: int) -> float:
    """Seconds until the next attempt: doubling, then slow, but never the end."""
    if is_crash_loop(crashes):
        return SLOW_DELAY_SECONDS
    return float(FIRST_DELAY_SECONDS * 2 ** (crashes - 1))


logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
START_ATTEMPTS = 3


class ManagedProcess:
    """One child and the task that looks after it."""

    def __init__(
        self, child: Child, log: Path, observer: Observer, stable_seconds: float = STABLE_SECONDS
    ) -> None:
        self.child = child
        self.log = log
        self.status = Status(child.name, child.title, child.address, ChildState.WAITING, datetime.now(UTC))
        self._observer = observer
        self._stable_seconds = stable_seconds
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._was_ready = False
        # Set while an end of the process is wanted, and so is no crash.
        self._expected_end = False

    async def start(self) -> None:
        """Return once it is ready; raise StartFailed if it does not get there."""
        self._task = asyncio.create_task(self._keep(), name=f"keep {self.child.name}")
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            self._task.result()

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def stop(self, patience: float = 1.0) -> None:
        """Ask it to end, then make it end; `patience` scales the time it gets."""
        if self._task is None or self.status.state is ChildState.STOPPED:
            return
        if not self._task.done():
            self._say(ChildState.STOPPING, pid=self.status.pid)
        self._task.cancel()
        with suppress(asyncio.CancelledError, StartFailed):
            await self._task
        await self._end_process(self.child.stop_seconds * patience)
        self._clean_up()
        self._say(ChildState.STOPPED)

    async def kill(self) -> None:
        """kill -9, as in an accident: the keeper then starts it again."""
        if (process := self._process) is not None:
            self._ready.clear()
            self.kill_now()
            await process.wait()

    def kill_now(self) -> None:
        if self._process is not None and self._process.returncode is None:
            signal_group(self._process, signal.SIGKILL)

    async def restart(self) -> None:
        """End it properly and return when it is ready again."""
        self._ready.clear()
        self._expected_end = self._process is not None
        await self._end_process(self.child.stop_seconds)
        await self._ready.wait()

    async def _keep(self) -> None:
        crashes = 0
        while True:
            began = time.monotonic()
            how_it_ended = await self._run_once_or_explain()
            self._ready.clear()
            if self._expected_end:
                self._expected_end = False
                continue
            crashes = crashes_in_a_row(crashes, time.monotonic() - began, self._stable_seconds)
            if not self._was_ready and crashes >= START_ATTEMPTS:
                raise StartFailed(self.child, how_it_ended, self.log)
            await self._pause(crashes, how_it_ended)

    async def _run_once_or_explain(self) -> str:
        try:
            how_it_ended = await self._run_once()
        except StartFailed:
            raise
        except Exception as error:
            # A mistake in a check must not leave the child without anybody who looks after it.
            logger.exception("%s: a mistake while looking after it", self.child.name)
            await self._end_process(self.child.stop_seconds)
            how_it_ended = f"looking after it failed: {error!r}"
        self._clean_up()
        return how_it_ended

    async def _run_once(self) -> str:
        """Run it until it ends by itself; return the words for how it ended."""
        self._say(ChildState.STARTING, note=self.status.note if self._was_ready else "")
        try:
            await self.child.prepare()
            process = self._process = await spawn(self.child, self.log)
        except (CannotPrepare, OSError) as error:
            return f"it cannot be run: {error}"
        self._say(ChildState.STARTING, pid=process.pid, note=self.status.note)
        ended = asyncio.create_task(process.wait())
        try:
            if await self._becomes_ready(process, ended):
                await ended
                return _describe_end(process)
        finally:
            ended.cancel()
        await self._end_process(self.child.stop_seconds)
        late = f"it was not ready within {self.child.start_seconds:.0f} s"
        if not self._was_ready:
            # Another attempt would only double the time until somebody learns of it.
            raise StartFailed(self.child, late, self.log)
        return late

    async def _becomes_ready(self, process: Process, ended: asyncio.Task[int]) -> bool:
        """True also if it ends before: whoever waits for its end sees that."""
        deadline = time.monotonic() + self.child.start_seconds
        while time.monotonic() < deadline and not ended.done():
            if await self.child.is_ready():
                self._was_ready = True
                self._say(ChildState.RUNNING, pid=process.pid)
                self._ready.set()
                return True
            await asyncio.wait({ended}, timeout=LOOK_SECONDS)
        return ended.done()

    async def _pause(self, crashes: int, how_it_ended: str) -> None:
        delay = restart_delay(crashes)
        state = ChildState.FAILING if is_crash_loop(crashes) else ChildState.RESTARTING
        times = f" ({crashes} times in a row)" if crashes > 1 else ""
        self._say(state, note=f"{how_it_ended}{times}; next start in {delay:g} s")
        logger.warning("%s: %s", self.child.name, self.status.note)
        await asyncio.sleep(delay)

    async def _end_process(self, seconds: float) -> None:
        """Ask it to end, and after a while make it end. Whoever runs it cleans up."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(self.child.stop_signal)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)
        if process.returncode is None:
            signal_group(process, signal.SIGKILL)
        await process.wait()

    def _clean_up(self) -> None:
        """Whatever it left in its group ends with it."""
        if self._process is not None:
            signal_group(self._process, signal.SIGKILL)
            self._process = None
        self.child.remove_leftovers()

    def _say(self, state: ChildState, pid: int | None = None, note: str = "") -> None:
        since = self.status.since if state is self.status.state else datetime.now(UTC)
        self.status = replace(self.status, state=state, since=since, pid=pid, note=note)
        self._observer(self.status)


def _describe_end(process: Process) -> str:
    code = process.returncode or 0
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"


class Supervisor:
    """All children of this process."""

    def __init__(self, logs: Path, observer: Observer, stable_seconds: float = STABLE_SECONDS) -> None:
        self._logs = logs
        self._observer = observer
        self._stable_seconds = stable_seconds
        self._groups: list[list[ManagedProcess]] = []
        self._patience = 1.0

    @property
    def statuses(self) -> list[Status]:
        return [keeper.status for group in self._groups for keeper in group]

    def add(self, children: Sequence[Child]) -> None:
        """Announce a group that does not depend on each other, but on the groups before it."""
        group = [
            ManagedProcess(child, self._logs / f"{child.name}.log", self._observer, self._stable_seconds)
            for child in children
        ]
        self._groups.append(group)
        for keeper in group:
            self._observer(keeper.status)

    async def start(self) -> None:
        """Start the group added last. Raise StartFailed at the first that fails; the others stay running."""
        for keeper in self._groups[-1]:
            rotate(keeper.log)
        starting = [asyncio.create_task(keeper.start()) for keeper in self._groups[-1]]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)

    async def stop(self) -> None:
        for group in reversed(self._groups):
            await asyncio.gather(*(keeper.stop(self._patience) for keeper in group))

    def hurry(self) -> None:
        """End everything at once, also what a stop is waiting for right now."""
        self._patience = 0.0
        for keeper in self._keepers():
            keeper.kill_now()

    async def kill(self, name: str) -> None:
        await self._keeper(name).kill()

    async def restart(self, name: str) -> None:
        await self._keeper(name).restart()

    async def wait_ready(self, name: str) -> None:
        await self._keeper(name).wait_ready()

    def _keepers(self) -> list[ManagedProcess]:
        return [keeper for group in self._groups for keeper in group]

    def _keeper(self, name: str) -> ManagedProcess:
        for keeper in self._keepers():
            if keeper.child.name == name:
                return keeper
        raise KeyError(name)
