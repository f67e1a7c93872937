"""A service of CodeHub as a process of its own: it can be asked to stop, killed, and its log read."""

import asyncio
import ctypes
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

from testkit.temporal_server import free_port
from testkit.waiting import until

ATTEMPTS = 3
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class ServiceProcess:
    """A running `python -m api` or `python -m proxy`."""

    base_url: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        """Ask it to stop, as whoever runs it would."""
        self.process.send_signal(signal.SIGTERM)

    async def wait_ended(self) -> int:
        """Its exit code, once it has ended."""

        async def ended() -> bool:
            return self.process.poll() is not None

        await until(ended, "the process ended")
        return int(self.process.returncode)

    def log_lines(self) -> list[dict[str, Any]]:
        """What it has logged, if it logs JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@asynccontextmanager
async def running_service(
    module: str, environment: Mapping[str, str], *arguments: str, port: int | None = None
) -> AsyncIterator[ServiceProcess]:
    """Once it is ready, on a free port if none is given; it is gone afterwards."""
    with TemporaryDirectory(prefix=f"codehub-{module}-") as directory:
        service = await _start(module, environment, arguments, port, Path(directory))
        try:
            yield service
        finally:
            # SIGKILL: whoever wants to see a proper end has asked for it before.
            service.process.kill()
            await asyncio.to_thread(service.process.wait)


async def _start(
    module: str, environment: Mapping[str, str], arguments: tuple[str, ...], port: int | None, directory: Path
) -> ServiceProcess:
    for _ in range(ATTEMPTS):
        service = spawn(module, environment, arguments, port or free_port(), directory)
        if await _becomes_ready(service, directory / "ready"):
            return service
        # Somebody may have taken the port meanwhile.
        service.process.kill()
        service.process.wait()
    raise AssertionError(f"{module} did not start:\n{(directory / 'log').read_text()}")


def spawn(
    module: str, environment: Mapping[str, str], arguments: tuple[str, ...], port: int, directory: Path
) -> ServiceProcess:
    """Start it and wait for nothing; `log` and, once it is ready, `ready` are in the directory."""
    (directory / "ready").unlink(missing_ok=True)
    everything = {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        **environment,
        f"CODEHUB_{module.upper()}_PORT": str(port),
        f"CODEHUB_{module.upper()}_READY_FILE": str(directory / "ready"),
    }
    log = directory / "log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            (sys.executable, "-m", module, *arguments),
            env=everything,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # A killed test run must not leave it behind.
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509
        )
    return ServiceProcess(f"http://127.0.0.1:{port}", port, process, log)


async def _becomes_ready(service: ServiceProcess, ready_file: Path) -> bool:
    async def decided() -> bool:
        return ready_file.exists() or service.process.poll() is not None

    await until(decided, "the process is ready")
    return ready_file.exists()
