"""A real Temporal server for tests: the development server, in memory, on a free loopback port."""

import contextlib
import ctypes
import http.client
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codehub.embedded.servers.temporal import DYNAMIC_CONFIGURATION

START_SECONDS = 30
POLL_SECONDS = 0.02
ATTEMPTS = 3
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class TemporalServer:
    port: int
    http_port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextlib.contextmanager
def temporal_dev_server(directory: Path, port: int | None = None, *settings: str) -> Iterator[TemporalServer]:
    """Run an in-memory server on the given port, or on a free one.

    `settings` are dynamic configuration besides our usual one.
    """
    server = _start(directory, port, (*DYNAMIC_CONFIGURATION, *settings))
    try:
        yield server
    finally:
        _stop(server)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def _start(directory: Path, port: int | None, configuration: Sequence[str]) -> TemporalServer:
    for _ in range(ATTEMPTS):
        chosen, http_port = port or free_port(), free_port()
        server = TemporalServer(chosen, http_port, _spawn(directory, chosen, http_port, configuration))
        if _becomes_ready(server):
            return server
        # Somebody took a port meanwhile.
        _stop(server)
    raise RuntimeError(f"Temporal did not start; its log is in {directory}")


def _stop(server: TemporalServer) -> None:
    # SIGKILL: nothing of a test's server is worth keeping.
    server.process.kill()
    server.process.wait()


def _spawn(
    directory: Path, port: int, http_port: int, configuration: Sequence[str]
) -> subprocess.Popen[bytes]:
    command = (Path(sys.executable).with_name("temporal"), "server", "start-dev", "--headless")
    options = ["--ip=127.0.0.1", f"--port={port}", f"--http-port={http_port}", "--log-level=warn"]
    options += [f"--dynamic-config-value={setting}" for setting in configuration]
    with (directory / "temporal.log").open("ab") as log:
        return subprocess.Popen(
            (*command, *options),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A killed test run must not leave its server behind.
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509
        )


def _becomes_ready(server: TemporalServer) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        if _answers(server):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _answers(server: TemporalServer) -> bool:
    """Both of its ports are open, and the namespace exists."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=5)
    try:
        connection.request("GET", "/api/v1/namespaces/default")
        with socket.create_connection(("127.0.0.1", server.port), timeout=5):
            return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
