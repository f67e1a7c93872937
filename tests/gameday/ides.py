"""The game day's IDE as a process of its own, in a home on a disk as small as a test wants."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from gameday.stage import tiny_ide
from testkit.processes import free_port
from testkit.waiting import until


@dataclass(frozen=True)
class RunningIde:
    """Answers at `url`."""

    url: str
    home: Path
    process: asyncio.subprocess.Process


@asynccontextmanager
async def running_ide(home: Path, disk_bytes: int | None = None) -> AsyncIterator[RunningIde]:
    """Once it answers; it is gone afterwards, and so is a small disk with all that was on it."""
    home.mkdir(exist_ok=True)
    port = free_port()
    command = (
        *(sys.executable, "-I", "-S", tiny_ide.__file__),
        *(f"--bind-addr=127.0.0.1:{port}", "--auth=none", str(home)),
    )
    process = await asyncio.create_subprocess_exec(*_on_small_disk(command, home, disk_bytes))
    ide = RunningIde(f"http://127.0.0.1:{port}", home, process)
    try:
        await until(lambda: _answers(ide), "the IDE answered")
        yield ide
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _on_small_disk(command: Sequence[str], home: Path, disk_bytes: int | None) -> Sequence[str]:
    """Mounted where only this process sees it, so that nothing is left to unmount."""
    if disk_bytes is None:
        return command
    script = f'mount -t tmpfs -o size={disk_bytes} tmpfs "$0" && exec "$@"'
    become = ("--mount",) if os.geteuid() == 0 else ("--mount", "--user", "--map-root-user")
    return ("unshare", *become, "sh", "-c", script, str(home), *command)


async def _answers(ide: RunningIde) -> bool:
    if ide.process.returncode is not None:
        raise AssertionError(f"the IDE ended with {ide.process.returncode}")
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"{ide.url}/healthz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False
