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
END_SECONDS = 60
ANSWER_SECONDS = 120
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Engine:
    """A running engine, and how it was started."""

    process: psutil.Process
    command: tuple[str, ...]
    directory: str

    @classmethod
    def find(cls) -> "Engine":
        process = psutil.Process(int(PID_FILE.read_text()))
        return cls(process, tuple(process.cmdline()), process.cwd())

    def restart(self, number: signal.Signals, log: Path) -> None:
        self.process.send_signal(number)
        psutil.wait_procs([self.process], timeout=END_SECONDS)
        # systemd starts it again by itself.
        if not SYSTEMD.is_dir():
            with log.open("ab") as output:
                subprocess.Popen(  # noqa: S603 (as it was started before)
                    self.command, cwd=self.directory, stdout=output, stderr=output, start_new_session=True
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
