"""What all contestants share: the upstreams and the browsers; each contestant has one core."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.api.load_generator import BadResponse, Target, send_requests
from benchmarks.peers import Unavailable
from benchmarks.proxy.upstream import SMALL
from benchmarks.servers import background_process
from codehub.domain.conditions import WorkspaceId
from codehub.embedded.free_ports import choose_ports
from codehub.services.credentials import new_session_token
from testkit.rows import new_workspace_id
from testkit.waiting import until

_CORES = sorted(os.sched_getaffinity(0))
# One core for the contestant; the others, if any, for the load, the upstream and the servers.
CONTESTANT_CORES = set(_CORES[:1])
OTHER_CORES = set(_CORES[1:]) or CONTESTANT_CORES
# Several, because the number of connections per user is limited.
BROWSERS = 8
START_SECONDS = 30
# Eleven headers of a browser's request for a page; the cookie is the twelfth.
BROWSER_HEADERS = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36",
    "Accept": "application/json, text/plain, */*",
    "Accept-Language": "en-US,en;q=0.9,de;q=0.8",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Cache-Control": "no-cache",
    "Sec-Fetch-Dest": "empty",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "same-origin",
    "sec-ch-ua": '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"',
}


@dataclass(frozen=True)
class Browser:
    """A browser of a signed-in user, and the user's workspace, whose upstream echoes WebSocket messages."""

    token: str = field(default_factory=new_session_token, repr=False)
    workspace_id: WorkspaceId = field(default_factory=new_workspace_id)

    def headers(self, label: str, port: int) -> dict[str, str]:
        """Return the headers for an origin of a workspace; other contestants ignore its name."""
        token = self.token_for(label)
        return BROWSER_HEADERS | {
            "Host": f"{label}.localhost:{port}",
            "Cookie": f"theme=dark; codehub_workspace={token}; _xsrf=2|1b0f|6a09e667f3bcc908",
        }

    def token_for(self, label: str) -> str:
        """Return the token of the cookie that the browser has for the origin with this label."""
        return f"{self.token}-{label}"


@dataclass(frozen=True)
class Testbed:
    """Upstreams and browsers; the first browser has a second workspace that serves pages."""

    directory: Path
    pages_port: int
    echo_port: int
    browsers: Sequence[Browser]
    pages_id: WorkspaceId = field(default_factory=new_workspace_id)

    @property
    def pages_prefix(self) -> str:
        return f"/w/{self.pages_id}/"

    @property
    def port_label(self) -> str:
        """What the host of the pages starts with where they are a port of the workspace."""
        return f"{self.pages_port}--{self.pages_id}"

    def socket(self, port: int) -> Path:
        """Return where the upstream of this port listens as well, as an instance would."""
        return self.directory / f"{port}.sock"

    def page(self, port: int, name: str) -> Target:
        return Target(port, self.pages_prefix + name, self.browsers[0].headers(self.pages_id, port))


@dataclass(frozen=True)
class Contestant:
    """A running proxy; without a process, the load goes directly to the upstream."""

    pages_port: int
    echo_port: int
    pid: int | None
    version: str = ""


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Pin processes that are started in the block to these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@asynccontextmanager
async def contestant(
    testbed: Testbed,
    name: str,
    command: Sequence[str],
    *,
    port: int,
    environment: Mapping[str, str],
    version: str = "",
) -> AsyncIterator[Contestant]:
    """Run the process on its core; yield when it forwards a page."""
    ready = testbed.page(port, SMALL)
    async with server(
        command, environment, testbed.directory / f"{name}.log", ready, CONTESTANT_CORES
    ) as pid:
        yield Contestant(port, port, pid, version)


@asynccontextmanager
async def server(
    command: Sequence[str], environment: Mapping[str, str], log: Path, ready: Target, cores: set[int]
) -> AsyncIterator[int]:
    """Run a process; yield its id when it responds."""
    with ExitStack() as stack:
        with on_cores(cores):
            process = stack.enter_context(background_process(command, environment, log))

        async def is_ready() -> bool:
            _check_running(process, log)
            try:
                await send_requests(ready, 1, 0)
            except (OSError, BadResponse):
                return False
            return True

        try:
            async with asyncio.timeout(START_SECONDS):
                await until(is_ready, f"{log.stem} responds")
        except TimeoutError:
            raise Unavailable(f"it does not respond; end of its log: {_end_of(log)}") from None
        yield process.pid


def _check_running(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll() is not None:
        raise Unavailable(f"it exited with status {process.returncode}: {_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-300:]


def free_port() -> int:
    return choose_ports(["server"], {})["server"]
