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
    ChildStatus,
    StartFailed,
    StatusListener,
    rotate,
    signal_group,
    spawn,
)

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
START_ATTEMPTS = 3
STABLE_SECONDS = 60.0
FIRST_DELAY_SECONDS = 0.25
SLOW_DELAY_SECONDS = 30.0
CRASH_LOOP_CRASHES = 6


def count_crashes(before: int, ran_seconds: float, stable_seconds: float = STABLE_SECONDS) -> int:
    """Return the number of crashes in a row; a child that ran long enough starts over at one."""
    return 1 if ran_seconds >= stable_seconds else before + 1


def is_crash_loop(crashes: int) -> bool:
    """Return whether there were so many crashes that a person should check the child."""
    return crashes >= CRASH_LOOP_CRASHES


def restart_delay(crashes: int) -> float:
    """Return the seconds until the next start: doubled after each crash, then constant."""
    if is_crash_loop(crashes):
        return SLOW_DELAY_SECONDS
    return float(FIRST_DELAY_SECONDS * 2 ** (crashes - 1))


class ManagedProcess:
    """One child and the task that keeps it running."""

    def __init__(
        self, child: Child, log: Path, listener: StatusListener, stable_seconds: float = STABLE_SECONDS
    ) -> None:
        self.child = child
        self.log = log
        self.status = ChildStatus(
            child.name, child.title, child.address, ChildState.WAITING, datetime.now(UTC)
        )
        self._listener = listener
        self._stable_seconds = stable_seconds
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._was_ready = False
        # Set during a restart: the end of the process is then not a crash.
        self._restarting = False

    async def start(self) -> None:
        """Return when the child is ready. Raise StartFailed if it does not become ready."""
        self._task = asyncio.create_task(self._keep_running(), name=f"keep {self.child.name} running")
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            self._task.result()

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def stop(self, *, immediately: bool = False) -> None:
        """Terminate the child, and kill it after its grace, or right away with `immediately`."""
        if self._task is None or self.status.state is ChildState.STOPPED:
            return
        if not self._task.done():
            self._set_status(ChildState.STOPPING, pid=self.status.pid)
        self._task.cancel()
        with suppress(asyncio.CancelledError, StartFailed):
            await self._task
        await self._end_process(0 if immediately else self.child.stop_seconds)
        self._clean_up()
        self._set_status(ChildState.STOPPED)

    async def kill(self) -> None:
        """Kill the process as a crash would; it is then restarted."""
        if (process := self._process) is not None:
            self._ready.clear()
            self.kill_now()
            await process.wait()

    def kill_now(self) -> None:
        if self._process is not None and self._process.returncode is None:
            signal_group(self._process, signal.SIGKILL)

    async def restart(self) -> None:
        """Terminate the process and return when it is ready again."""
        self._ready.clear()
        self._restarting = self._process is not None
        await self._end_process(self.child.stop_seconds)
        await self._ready.wait()

    async def _keep_running(self) -> None:
        crashes = 0
        while True:
            began = time.monotonic()
            outcome = await self._run_and_clean_up()
            self._ready.clear()
            if self._restarting:
                self._restarting = False
                continue
            crashes = count_crashes(crashes, time.monotonic() - began, self._stable_seconds)
            if not self._was_ready and crashes >= START_ATTEMPTS:
                raise StartFailed(self.child, outcome, self.log)
            await self._wait_to_restart(crashes, outcome)

    async def _run_and_clean_up(self) -> str:
        try:
            outcome = await self._run_once()
        except StartFailed:
            raise
        except Exception as error:
            # A bug in a readiness check must not leave the child unsupervised.
            logger.exception("%s: supervision failed", self.child.name)
            await self._end_process(self.child.stop_seconds)
            outcome = f"its supervision failed: {error!r}"
        self._clean_up()
        return outcome

    async def _run_once(self) -> str:
        """Run the process until it ends. Return how it ended, for people."""
        self._set_status(ChildState.STARTING, note=self.status.note if self._was_ready else "")
        try:
            await self.child.prepare()
            process = self._process = await spawn(self.child, self.log)
        except (CannotPrepare, OSError) as error:
            return f"it cannot be run: {error}"
        self._set_status(ChildState.STARTING, pid=process.pid, note=self.status.note)
        ended = asyncio.create_task(process.wait())
        try:
            if await self._becomes_ready(process, ended):
                await ended
                return _describe_exit(process)
        finally:
            ended.cancel()
        await self._end_process(self.child.stop_seconds)
        outcome = f"it was not ready within {self.child.start_seconds:.0f} s"
        if not self._was_ready:
            # Another attempt would only delay the report.
            raise StartFailed(self.child, outcome, self.log)
        return outcome

    async def _becomes_ready(self, process: Process, ended: asyncio.Task[int]) -> bool:
        """Return True when the process is ready or has ended, and False when the time is over."""
        deadline = time.monotonic() + self.child.start_seconds
        while time.monotonic() < deadline and not ended.done():
            if await self.child.is_ready():
                self._was_ready = True
                self._set_status(ChildState.RUNNING, pid=process.pid)
                self._ready.set()
                return True
            await asyncio.wait({ended}, timeout=POLL_SECONDS)
        return ended.done()

    async def _wait_to_restart(self, crashes: int, outcome: str) -> None:
        delay = restart_delay(crashes)
        state = ChildState.FAILING if is_crash_loop(crashes) else ChildState.RESTARTING
        times = f" ({crashes} times in a row)" if crashes > 1 else ""
        self._set_status(state, note=f"{outcome}{times}; next start in {delay:g} s")
        logger.warning("%s: %s", self.child.name, self.status.note)
        await asyncio.sleep(delay)

    async def _end_process(self, seconds: float) -> None:
        """Terminate the process and kill it after this time. The running task cleans up."""
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
        """Kill what the process left in its group, and remove its leftover files."""
        if self._process is not None:
            signal_group(self._process, signal.SIGKILL)
            self._process = None
        self.child.remove_leftovers()

    def _set_status(self, state: ChildState, pid: int | None = None, note: str = "") -> None:
        since = self.status.since if state is self.status.state else datetime.now(UTC)
        self.status = replace(self.status, state=state, since=since, pid=pid, note=note)
        self._listener(self.status)


def _describe_exit(process: Process) -> str:
    code = process.returncode or 0
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"


class Supervisor:
    """All children of this process, in groups that start one after the other."""

    def __init__(self, logs: Path, listener: StatusListener, stable_seconds: float = STABLE_SECONDS) -> None:
        self._logs = logs
        self._listener = listener
        self._stable_seconds = stable_seconds
        self._groups: list[list[ManagedProcess]] = []
        self._stopping_now = False

    @property
    def statuses(self) -> list[ChildStatus]:
        return [each.status for each in self._processes()]

    def add(self, children: Sequence[Child]) -> None:
        """Add a group of children. They depend on the groups before it, but not on each other."""
        group = [
            ManagedProcess(child, self._logs / f"{child.name}.log", self._listener, self._stable_seconds)
            for child in children
        ]
        self._groups.append(group)
        for each in group:
            self._listener(each.status)

    async def start(self) -> None:
        """Start the last group. Raise StartFailed at the first failure; the other children keep running."""
        for each in self._groups[-1]:
            rotate(each.log)
        starting = [asyncio.create_task(each.start()) for each in self._groups[-1]]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)

    async def stop(self) -> None:
        for group in reversed(self._groups):
            await asyncio.gather(*(each.stop(immediately=self._stopping_now) for each in group))

    def stop_now(self) -> None:
        """Kill everything, also what a stop is waiting for."""
        self._stopping_now = True
        for each in self._processes():
            each.kill_now()

    async def kill(self, name: str) -> None:
        await self._find(name).kill()

    async def restart(self, name: str) -> None:
        await self._find(name).restart()

    async def wait_ready(self, name: str) -> None:
        await self._find(name).wait_ready()

    def _processes(self) -> list[ManagedProcess]:
        return [each for group in self._groups for each in group]

    def _find(self, name: str) -> ManagedProcess:
        for each in self._processes():
            if each.child.name == name:
                return each
        raise KeyError(name)
