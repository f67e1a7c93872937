"""JupyterHub, DockerSpawner and their proxy, installed for the benchmark alone."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass
from pathlib import Path

from benchmarks.proxy.testbed import CannotRun

INSTALL_SECONDS = 180
PACKAGES = ("jupyterhub", "dockerspawner")
PROXY = "configurable-http-proxy"
VERSIONS = "from importlib.metadata import version as v; print(*(f'{n} {v(n)}' for n in %r), sep=', ')"


@dataclass(frozen=True)
class Installed:
    """`environment` holds nothing of ours, and leads to the proxy."""

    python: str
    environment: dict[str, str]
    versions: str


async def install_jupyterhub(directory: Path) -> Installed:
    npm = shutil.which("npm")
    if npm is None:
        raise CannotRun("apt-get install npm")
    uv, python = str(Path(sys.executable).with_name("uv")), str(directory / "venv" / "bin" / "python")
    await _run(uv, "venv", "--quiet", "--python", sys.executable, str(directory / "venv"))
    await _run(uv, "pip", "install", "--quiet", "--python", python, *PACKAGES)
    await _run(npm, "install", "--prefix", str(directory), "--no-audit", "--no-fund", "--silent", PROXY)
    programs = directory / "node_modules" / ".bin"
    packages = await _run(python, "-c", VERSIONS % (PACKAGES,))
    proxy = await _run(str(programs / PROXY), "--version")
    environment = {**_environment(), "PATH": f"{programs}:{os.environ['PATH']}"}
    return Installed(python, environment, f"{packages}, {PROXY} {proxy}")


def _environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("CODEHUB_", "VIRTUAL_"))
    }


async def _run(*command: str) -> str:
    """What it printed. It ends with us: nothing may be written into a directory that is being removed."""
    process = await asyncio.create_subprocess_exec(
        *command, env=_environment(), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(INSTALL_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        raise CannotRun(f"it cannot be installed within {INSTALL_SECONDS} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise CannotRun(f"it cannot be installed: {errors.decode(errors='replace').strip()[-300:]}")
    return output.decode().strip()
