"""What every contestant is given: the same upstreams and visitors, and a core of its own."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.api.load_generator import Refused, Target, ask_for
from benchmarks.api.population import child
from benchmarks.proxy.upstream import SMALL
from codehub.domain.conditions import WorkspaceId
from codehub.embedded.free_ports import choose_ports
from codehub.services.credentials import new_session_token
from testkit.rows import new_workspace_id
from testkit.waiting import until

_CORES = sorted(os.sched_getaffinity(0))
# One for whoever is measured; the rest, if there is any, for the load, the upstream and our servers.
CONTESTANT_CORES = set(_CORES[:1])
OTHER_CORES = set(_CORES[1:]) or CONTESTANT_CORES
# More than one, since nobody may have thousands of connections.
VISITORS = 8
START_SECONDS = 30
# Eleven fields that a browser sends for a request of a page; with the cookie they are twelve.
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36",
    "Accept": "application/json, text/plain, */*",
    "Accept-Language": "en-US,en;q=0.9,de;q=0.8",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Cache-Control": "no-cache",
    "Sec-Fetch-Dest": "empty",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Deployment": "same-origin",
    "sec-ch-ua": '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"',
}


class CannotRun(Exception):
    """A contestant that cannot be had here; the message says why, or how to install it."""


@dataclass(frozen=True)
class Visitor:
    """A browser of somebody signed in, and their workspace, whose upstream echoes WebSocket messages."""

    token: str = field(default_factory=new_session_token, repr=False)
    workspace_id: WorkspaceId = field(default_factory=new_workspace_id)

    @property
    def headers(self) -> dict[str, str]:
        return BROWSER | {
            "Cookie": f"theme=dark; codehub_session={self.token}; _xsrf=2|1b0f|6a09e667f3bcc908"
        }


@dataclass(frozen=True)
class Stage:
    """The first visitor has another workspace, of pages."""

    directory: Path
    pages_port: int
    echo_port: int
    visitors: Sequence[Visitor]
    pages_id: WorkspaceId = field(default_factory=new_workspace_id)

    @property
    def pages_prefix(self) -> str:
        return f"/w/{self.pages_id}/"

    def page(self, port: int, name: str) -> Target:
        return Target(port, self.pages_prefix + name, self.visitors[0].headers)


@dataclass(frozen=True)
class Contestant:
    """Something that answers; without a process, nothing is between the load and the upstream."""

    pages_port: int
    echo_port: int
    pid: int | None
    version: str = ""


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """What is started meanwhile stays there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@asynccontextmanager
async def contestant(
    stage: Stage,
    name: str,
    command: Sequence[str],
    *,
    port: int,
    environment: Mapping[str, str],
    version: str = "",
) -> AsyncIterator[Contestant]:
    """The process on its core, once it passes a page on."""
    ready = stage.page(port, SMALL)
    async with server(command, environment, stage.directory / f"{name}.log", ready, CONTESTANT_CORES) as pid:
        yield Contestant(port, port, pid, version)


@asynccontextmanager
async def server(
    command: Sequence[str], environment: Mapping[str, str], log: Path, ready: Target, cores: set[int]
) -> AsyncIterator[int]:
    """The id of a process that answers."""
    with ExitStack() as stack:
        with on_cores(cores):
            process = stack.enter_context(child(command, environment, log))

        async def answers() -> bool:
            _check_running(process, log)
            try:
                await ask_for(ready, 1, 0)
            except (OSError, Refused):
                return False
            return True

        try:
            async with asyncio.timeout(START_SECONDS):
                await until(answers, f"{log.stem} answers")
        except TimeoutError:
            raise CannotRun(f"it does not answer; it said last: {_last_words(log)}") from None
        yield process.pid


def _check_running(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll() is not None:
        raise CannotRun(f"it ended with status {process.returncode}: {_last_words(log)}")


def _last_words(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-300:]


def free_port() -> int:
    return choose_ports(["server"], {})["server"]
