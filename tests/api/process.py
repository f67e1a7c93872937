"""The API as a process of its own, on a free port: it can be asked to stop, killed, and its log read."""

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

import httpx

from tests.temporal_server import free_port
from tests.waiting import until

ATTEMPTS = 3
PATIENCE_SECONDS = 90
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class ApiProcess:
    """A running `python -m api`."""

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

        await until(ended, "the API process ended")
        return int(self.process.returncode)

    def log_lines(self) -> list[dict[str, Any]]:
        """What it has logged, if it logs JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@asynccontextmanager
async def api_process(environment: Mapping[str, str]) -> AsyncIterator[str]:
    """The address of an API process with these settings, which is gone afterwards."""
    async with running_api(environment) as api:
        yield api.base_url


@asynccontextmanager
async def running_api(environment: Mapping[str, str]) -> AsyncIterator[ApiProcess]:
    """The same with everything that one may want to know of the process."""
    with TemporaryDirectory(prefix="codehub-api-") as directory:
        api = await _start(environment, Path(directory))
        try:
            yield api
        finally:
            # SIGKILL: whoever wants to see a proper end has asked for it before.
            api.process.kill()
            await asyncio.to_thread(api.process.wait)


async def _start(environment: Mapping[str, str], directory: Path) -> ApiProcess:
    for _ in range(ATTEMPTS):
        api = _spawn(environment, directory)
        if await _becomes_ready(api, directory / "ready"):
            return api
        # Somebody may have taken the port meanwhile.
        api.process.kill()
        api.process.wait()
    raise AssertionError(f"the API did not start:\n{(directory / 'api.log').read_text()}")


def _spawn(environment: Mapping[str, str], directory: Path) -> ApiProcess:
    port = free_port()
    (directory / "ready").unlink(missing_ok=True)
    everything = {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        **environment,
        "CODEHUB_API_PORT": str(port),
        "CODEHUB_API_READY_FILE": str(directory / "ready"),
    }
    log = directory / "api.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            (sys.executable, "-m", "api"),
            env=everything,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # A killed test run must not leave it behind.
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509
        )
    return ApiProcess(f"http://127.0.0.1:{port}", port, process, log)


async def _becomes_ready(api: ApiProcess, ready_file: Path) -> bool:
    async def decided() -> bool:
        return ready_file.exists() or api.process.poll() is not None

    await until(decided, "the API process is ready")
    return ready_file.exists()


@dataclass(frozen=True)
class Event:
    """A server-sent event as a browser sees it."""

    name: str
    data: Any
    id: str | None


class EventStream:
    """One open stream of live events; comments and bare `retry` lines are passed over, as browsers do."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Event:
        event = await self._next()
        assert event is not None, "the stream has ended"
        return event

    async def next_news(self) -> Event:
        """The next that is no heartbeat: one may come at any time, also before the snapshot."""
        while (event := await self.next()).name == "heartbeat":
            pass
        return event

    async def next_named(self, name: str) -> Event:
        while (event := await self.next()).name != name:
            pass
        return event

    async def until_end(self) -> list[Event]:
        """Everything up to a clean end."""
        events = []
        while (event := await self._next()) is not None:
            events.append(event)
        return events

    async def _next(self) -> Event | None:
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in self._lines:
                name, separator, value = line.partition(": ")
                if separator and name:
                    fields[name] = value
                elif not line and "event" in fields:
                    return Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
        return None


@asynccontextmanager
async def follow(client: httpx.AsyncClient, last_event_id: str | None = None) -> AsyncIterator[EventStream]:
    """Live events of whoever the client stands for."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    async with client.stream("GET", "/api/v1/events", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield EventStream(response)


@asynccontextmanager
async def calling(base_url: str, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with as many connections as it likes, which waits for a stream as long as a test may."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=base_url, headers=headers, limits=limits, timeout=PATIENCE_SECONDS
    ) as client:
        yield client
