"""The game day's IDE as a process, optionally with its home on a small disk."""

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
    """A running IDE."""

    url: str
    home: Path
    process: asyncio.subprocess.Process


@asynccontextmanager
async def running_ide(
    home: Path, disk_bytes: int | None = None, secret: str | None = None
) -> AsyncIterator[RunningIde]:
    """Start an IDE and wait until it is ready; stop it and remove the small disk at the end."""
    home.mkdir(exist_ok=True)
    port = free_port()
    command = (
        *(sys.executable, "-I", "-S", tiny_ide.__file__),
        *(f"--bind-addr=127.0.0.1:{port}", "--auth=none", str(home)),
    )
    environment = {**os.environ, **({tiny_ide.SECRET_VARIABLE: secret} if secret else {})}
    process = await asyncio.create_subprocess_exec(
        *_on_small_disk(command, home, disk_bytes), env=environment
    )
    ide = RunningIde(f"http://127.0.0.1:{port}", home, process)
    try:
        headers = {tiny_ide.SECRET_HEADER: secret} if secret else {}
        await until(lambda: _is_ready(ide, headers), "the IDE is ready")
        yield ide
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _on_small_disk(command: Sequence[str], home: Path, disk_bytes: int | None) -> Sequence[str]:
    """Mount the disk in the process's own namespace, so that it disappears with the process."""
    if disk_bytes is None:
        return command
    script = f'mount -t tmpfs -o size={disk_bytes} tmpfs "$0" && exec "$@"'
    namespaces = ("--mount",) if os.geteuid() == 0 else ("--mount", "--user", "--map-root-user")
    return ("unshare", *namespaces, "sh", "-c", script, str(home), *command)


async def _is_ready(ide: RunningIde, headers: dict[str, str]) -> bool:
    if ide.process.returncode is not None:
        raise AssertionError(f"the IDE ended with {ide.process.returncode}")
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"{ide.url}/healthz", headers=headers) as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False
