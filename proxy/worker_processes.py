"""Runs several proxy processes on one port: restarts those that die, stops all together."""

import asyncio
import logging
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from codehub.backoff import delay_after
from codehub.readiness import signal_ready

log = logging.getLogger("proxy")

READY_POLL_SECONDS = 0.1
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 10.0
# A process that ran this long started correctly, so its failure does not count as repeated.
STEADY_SECONDS = 30.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Added to the number of the signal that killed a process.
KILLED = 128


async def run_workers(count: int, ready_file: Path | None) -> int:
    """Run until stopped, or until a process cannot start; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="codehub-proxy-") as directory:
        workers = [WorkerProcess(number, Path(directory) / str(number)) for number in range(count)]
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _stop, workers, stopping)
        watching = [asyncio.create_task(worker.watch(stopping)) for worker in workers]
        ready = asyncio.create_task(_say_ready(workers, ready_file))
        # The first process has stopped or could not start, so stop the others.
        await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.is_set():
            _stop(workers, stopping)
        statuses = await asyncio.gather(*watching)
        ready.cancel()
    return max(map(_exit_status, statuses))


def _stop(workers: "list[WorkerProcess]", stopping: asyncio.Event) -> None:
    stopping.set()
    for worker in workers:
        worker.stop()


def _exit_status(status: int) -> int:
    """Return the status as a shell does; SIGTERM before a process handles it counts as a normal stop."""
    if status == -signal.SIGTERM:
        return 0
    return status if status >= 0 else KILLED - status


async def _say_ready(workers: "list[WorkerProcess]", ready_file: Path | None) -> None:
    for worker in workers:
        await worker.wait_until_ready()
    log.info("all %d workers are ready", len(workers))
    signal_ready(ready_file)


class WorkerProcess:
    """One process, and its replacements."""

    def __init__(self, number: int, ready_file: Path) -> None:
        self._number = number
        self._ready_file = ready_file
        self._process: asyncio.subprocess.Process | None = None

    async def wait_until_ready(self) -> None:
        # There is no event for a new file.
        while not self._ready_file.exists():  # noqa: ASYNC110
            await asyncio.sleep(READY_POLL_SECONDS)

    def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def watch(self, stopping: asyncio.Event) -> int:
        """Keep a process running; return the status of the last one."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            began = loop.time()
            status = await self._run(stopping)
            # A process that never became ready would fail again for the same reason.
            if stopping.is_set() or not self._ready_file.exists():
                return status
            failures = 1 if loop.time() - began > STEADY_SECONDS else failures + 1
            log.warning("worker %d ended with status %d; it is restarted", self._number, status)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_after(failures, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS)):
                    await stopping.wait()
            if stopping.is_set():
                return status

    async def _run(self, stopping: asyncio.Event) -> int:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "proxy", "--number", str(self._number)),
            env={**os.environ, "CODEHUB_PROXY_READY_FILE": str(self._ready_file)},
            # When this pipe closes, the process knows that its parent is gone.
            stdin=asyncio.subprocess.PIPE,
            # Ctrl-C in a terminal must reach only the parent, which forwards it once.
            start_new_session=True,
        )
        if stopping.is_set():
            # The signal came while the process was being created.
            self.stop()
        return await self._process.wait()
