"""Run the API or the proxy as a separate process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from testkit.processes import free_port, kill, spawn
from testkit.waiting import until

ATTEMPTS = 3
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


@dataclass(frozen=True)
class ServiceProcess:
    """A running `python -m api` or `python -m proxy`."""

    base_url: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        """Ask the process to stop, as a supervisor does."""
        self.process.send_signal(signal.SIGTERM)

    async def wait_ended(self) -> int:
        """Wait until the process has ended; return its exit code."""

        async def ended() -> bool:
            return self.process.poll() is not None

        await until(ended, "the process ended")
        return int(self.process.returncode)

    def log_lines(self) -> list[dict[str, Any]]:
        """Return the lines that it has logged as JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@asynccontextmanager
async def running_service(
    module: str, environment: Mapping[str, str], *arguments: str, port: int | None = None
) -> AsyncIterator[ServiceProcess]:
    """Run a service, on a free port if none is given; yield it once it is ready, and kill it at the end."""
    with TemporaryDirectory(prefix=f"codehub-{module}-") as directory:
        service = await _start(module, environment, arguments, port, Path(directory))
        try:
            yield service
        finally:
            # A test of a graceful shutdown has called stop() before.
            await asyncio.to_thread(kill, service.process)


async def _start(
    module: str, environment: Mapping[str, str], arguments: tuple[str, ...], port: int | None, directory: Path
) -> ServiceProcess:
    for _ in range(ATTEMPTS):
        service = spawn_service(module, environment, arguments, port or free_port(), directory)
        if await _becomes_ready(service, directory / "ready"):
            return service
        # Another process may have taken the port.
        kill(service.process)
    raise AssertionError(f"{module} did not start:\n{(directory / 'log').read_text()}")


def spawn_service(
    module: str, environment: Mapping[str, str], arguments: tuple[str, ...], port: int, directory: Path
) -> ServiceProcess:
    """Start a service without waiting; it writes `log` and, once ready, `ready` into the directory."""
    (directory / "ready").unlink(missing_ok=True)
    everything = {
        **inherited_environment(),
        **environment,
        f"CODEHUB_{module.upper()}_PORT": str(port),
        f"CODEHUB_{module.upper()}_READY_FILE": str(directory / "ready"),
    }
    log = directory / "log"
    process = spawn((sys.executable, "-m", module, *arguments), log, everything)
    return ServiceProcess(f"http://127.0.0.1:{port}", port, process, log)


def inherited_environment() -> dict[str, str]:
    """Return the few variables of this process's environment that another process needs."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


async def _becomes_ready(service: ServiceProcess, ready_file: Path) -> bool:
    async def decided() -> bool:
        return ready_file.exists() or service.process.poll() is not None

    await until(decided, "the process is ready")
    return ready_file.exists()
