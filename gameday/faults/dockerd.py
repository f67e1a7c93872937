"""The Docker engine itself ends, asked or killed, and is started again as it was started."""

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
# Under systemd it cannot be started in another way, either.
STARTS_BY_ITSELF = Path("/run/systemd/system").is_dir()
CONTAINERD = "containerd"
DATA_ROOT = "--data-root"
END_SECONDS = 120
ANSWER_SECONDS = 120
POLL_SECONDS = 0.2
SHORTEST_EXCHANGE_SECONDS, LONGEST_EXCHANGE_SECONDS = 4.0, 10.0


class EngineDoesNotEnd(Exception):
    """Neither asked nor killed; the game cannot go on."""


@dataclass(frozen=True)
class Engine:
    """A running engine, and how it was started."""

    process: psutil.Process
    command: tuple[str, ...]
    directory: str
    # What it runs beside the containers ends with it; until then a new engine would take that for its own.
    beside: tuple[psutil.Process, ...]

    @classmethod
    def find(cls) -> "Engine":
        process = psutil.Process(int(PID_FILE.read_text()))
        beside = tuple(child for child in process.children() if child.name() == CONTAINERD)
        return cls(process, tuple(process.cmdline()), process.cwd(), beside)

    def restart(self, number: signal.Signals, log: Path) -> None:
        """Return once it is on its way again."""
        self.end(number)
        if not STARTS_BY_ITSELF:
            self.start(log)

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        _, alive = psutil.wait_procs([self.process, *self.beside], timeout=END_SECONDS)
        if alive:
            raise EngineDoesNotEnd(f"{alive} did not end within {END_SECONDS} s.")

    def start(self, log: Path, *options: str) -> None:
        """As it was started before, with these options besides; not as our child, since it outlives us."""
        with log.open("ab") as output:
            subprocess.run(  # noqa: S603 (as it was started before)
                ("setsid", "--fork", *self.command, *options),  # noqa: S607
                check=True,
                cwd=self.directory,
                stdout=output,
                stderr=output,
            )


async def restart_dockerd(stage: Stage, random: Random) -> str:
    number = random.choice((signal.SIGTERM, signal.SIGKILL))
    engine = await asyncio.to_thread(Engine.find)
    await _to_the_end(_restart(stage, engine, number))
    return f"{number.name} of dockerd ({engine.process.pid}), and started again"


async def exchange_dockerd(stage: Stage, random: Random) -> str:
    """Another engine, without any volume, answers in its place; the workers start while it does."""
    seconds = random.uniform(SHORTEST_EXCHANGE_SECONDS, LONGEST_EXCHANGE_SECONDS)
    engine = await asyncio.to_thread(Engine.find)
    if DATA_ROOT in engine.command:
        raise NothingToBreak("the engine was exchanged already")
    await _to_the_end(_exchange(stage, engine, seconds))
    return f"dockerd ({engine.process.pid}) was exchanged for an empty one for {seconds:.1f} s"


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """An engine that was ended comes back, whatever becomes of the game."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _restart(stage: Stage, engine: Engine, number: signal.Signals) -> None:
    await asyncio.to_thread(engine.restart, number, stage.stack.data.log("dockerd"))
    await _wait_for_answer(stage)


async def _exchange(stage: Stage, engine: Engine, seconds: float) -> None:
    log, data = stage.stack.data.log("dockerd"), stage.stack.data.root / "other-engine"
    await asyncio.to_thread(engine.end, signal.SIGTERM)
    try:
        await asyncio.to_thread(engine.start, log, DATA_ROOT, str(data))
        await _wait_for_answer(stage)
        await asyncio.gather(*(stage.stack.kill(name) for name in WORKERS))
        await asyncio.sleep(seconds)
    finally:
        with suppress(OSError, psutil.NoSuchProcess):
            await asyncio.to_thread(Engine.find().end, signal.SIGTERM)
        await asyncio.to_thread(engine.start, log)
    await _wait_for_answer(stage)


async def _wait_for_answer(stage: Stage) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        while not await _answers(stage):  # noqa: ASYNC110 (the engine tells nobody)
            await asyncio.sleep(POLL_SECONDS)


async def _answers(stage: Stage) -> bool:
    try:
        await stage.jobs()
    except (DockerError, OSError, aiohttp.ClientError):
        return False
    return True
