"""The Docker engine itself ends, asked or killed, and is started again as it was started."""

import asyncio
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random

import aiohttp
import psutil
from aiodocker import DockerError

from gameday.stage import Stage

PID_FILE = Path("/var/run/docker.pid")
SYSTEMD = Path("/run/systemd/system")
CONTAINERD = "containerd"
END_SECONDS = 120
ANSWER_SECONDS = 120
POLL_SECONDS = 0.2


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
        self.process.send_signal(number)
        _, alive = psutil.wait_procs([self.process, *self.beside], timeout=END_SECONDS)
        if alive:
            raise EngineDoesNotEnd(f"{alive} did not end within {END_SECONDS} s.")
        # systemd starts it again by itself.
        if not SYSTEMD.is_dir():
            # Not as our child: it outlives us.
            with log.open("ab") as output:
                subprocess.run(  # noqa: S603 (as it was started before)
                    ("setsid", "--fork", *self.command),  # noqa: S607
                    check=True,
                    cwd=self.directory,
                    stdout=output,
                    stderr=output,
                )


async def restart_dockerd(stage: Stage, random: Random) -> str:
    number = random.choice((signal.SIGTERM, signal.SIGKILL))
    engine = await asyncio.to_thread(Engine.find)
    restarting = asyncio.create_task(_restart(stage, engine, number))
    try:
        await asyncio.shield(restarting)
    except asyncio.CancelledError:
        # An engine that was ended comes back, whatever becomes of the game.
        await restarting
        raise
    return f"{number.name} of dockerd ({engine.process.pid}), and started again"


async def _restart(stage: Stage, engine: Engine, number: signal.Signals) -> None:
    await asyncio.to_thread(engine.restart, number, stage.stack.data.log("dockerd"))
    async with asyncio.timeout(ANSWER_SECONDS):
        while not await _answers(stage):  # noqa: ASYNC110 (the engine tells nobody)
            await asyncio.sleep(POLL_SECONDS)


async def _answers(stage: Stage) -> bool:
    try:
        await stage.jobs()
    except (DockerError, OSError, aiohttp.ClientError):
        return False
    return True
