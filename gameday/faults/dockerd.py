"""Faults of the Docker engine: restart it, or swap it for an empty one."""

import asyncio
import signal
import subprocess
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import psutil
from aiodocker import DockerError

from gameday.faults.fault import NothingToBreak
from gameday.stage.stage import WORKERS, Stage

PID_FILE = Path("/var/run/docker.pid")
# Then it cannot be started with other options either.
RESTARTED_BY_SYSTEMD = Path("/run/systemd/system").is_dir()
CONTAINERD = "containerd"
DATA_ROOT = "--data-root"
END_SECONDS = 120
START_SECONDS = 120
POLL_SECONDS = 0.2
SHORTEST_SWAP_SECONDS, LONGEST_SWAP_SECONDS = 4.0, 10.0


class EngineDidNotStop(Exception):
    """The engine survived the signal; the game cannot continue."""


@dataclass(frozen=True)
class Engine:
    """A running engine and how it was started."""

    process: psutil.Process
    command: tuple[str, ...]
    directory: str
    # A new engine would use a containerd that is still ending, so wait for it too.
    helpers: tuple[psutil.Process, ...]

    @classmethod
    def find(cls) -> "Engine":
        process = psutil.Process(int(PID_FILE.read_text()))
        helpers = tuple(child for child in process.children() if child.name() == CONTAINERD)
        return cls(process, tuple(process.cmdline()), process.cwd(), helpers)

    def restart(self, number: signal.Signals, log: Path) -> None:
        """Stop the engine and start it again, without waiting until it is ready."""
        self.end(number)
        if not RESTARTED_BY_SYSTEMD:
            self.start(log)

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        _, alive = psutil.wait_procs([self.process, *self.helpers], timeout=END_SECONDS)
        if alive:
            raise EngineDidNotStop(f"{alive} did not end within {END_SECONDS} s.")

    def start(self, log: Path, *options: str) -> None:
        """Start it as before with additional options, detached, because it outlives the game."""
        with log.open("ab") as output:
            subprocess.run(  # noqa: S603 (the same command as before)
                ("setsid", "--fork", *self.command, *options),  # noqa: S607
                check=True,
                cwd=self.directory,
                stdout=output,
                stderr=output,
            )


async def restart_dockerd(stage: Stage, random: Random) -> str:
    number = random.choice((signal.SIGTERM, signal.SIGKILL))
    engine = await asyncio.to_thread(Engine.find)
    await _finish(_restart(stage, engine, number))
    return f"{number.name} of dockerd ({engine.process.pid}), then restart"


async def swap_dockerd(stage: Stage, random: Random) -> str:
    """Replace the engine by one without volumes, and restart the workers meanwhile."""
    seconds = random.uniform(SHORTEST_SWAP_SECONDS, LONGEST_SWAP_SECONDS)
    engine = await asyncio.to_thread(Engine.find)
    if DATA_ROOT in engine.command:
        raise NothingToBreak("the engine was already swapped")
    await _finish(_swap(stage, engine, seconds))
    return f"dockerd ({engine.process.pid}) was replaced by an empty one for {seconds:.1f} s"


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Complete the work even if the game is cancelled: the engine must come back."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _restart(stage: Stage, engine: Engine, number: signal.Signals) -> None:
    await asyncio.to_thread(engine.restart, number, stage.stack.data.log("dockerd"))
    await _wait_until_ready(stage)


async def _swap(stage: Stage, engine: Engine, seconds: float) -> None:
    log, data = stage.stack.data.log("dockerd"), stage.stack.data.root / "other-engine"
    await asyncio.to_thread(engine.end, signal.SIGTERM)
    try:
        await asyncio.to_thread(engine.start, log, DATA_ROOT, str(data))
        await _wait_until_ready(stage)
        await asyncio.gather(*(stage.stack.kill(name) for name in WORKERS))
        await asyncio.sleep(seconds)
    finally:
        with suppress(OSError, psutil.NoSuchProcess):
            await asyncio.to_thread(Engine.find().end, signal.SIGTERM)
        await asyncio.to_thread(engine.start, log)
    await _wait_until_ready(stage)


async def _wait_until_ready(stage: Stage) -> None:
    async with asyncio.timeout(START_SECONDS):
        while not await _is_ready(stage):  # noqa: ASYNC110 (there is no event to wait for)
            await asyncio.sleep(POLL_SECONDS)


async def _is_ready(stage: Stage) -> bool:
    try:
        await stage.jobs()
    except (DockerError, OSError, aiohttp.ClientError):
        return False
    return True
