"""A real Temporal server for tests: the development server, in memory, on a free loopback port."""

import contextlib
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codehub.embedded.servers.temporal import DYNAMIC_CONFIGURATION
from testkit.processes import free_ports, kill, spawn

START_SECONDS = 30
POLL_SECONDS = 0.02
ATTEMPTS = 3


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
    """Run an in-memory server, on a free port if none is given; `settings` are dynamic configuration."""
    server = _start(directory, port, (*DYNAMIC_CONFIGURATION, *settings))
    try:
        yield server
    finally:
        kill(server.process)


def _start(directory: Path, port: int | None, configuration: Sequence[str]) -> TemporalServer:
    for _ in range(ATTEMPTS):
        chosen, http_port = free_ports(2)
        chosen = port or chosen
        server = TemporalServer(chosen, http_port, _spawn(directory, chosen, http_port, configuration))
        if _becomes_ready(server):
            return server
        # Another process took a port.
        kill(server.process)
    raise RuntimeError(f"Temporal did not start; its log is in {directory}")


def _spawn(
    directory: Path, port: int, http_port: int, configuration: Sequence[str]
) -> subprocess.Popen[bytes]:
    command = (Path(sys.executable).with_name("temporal"), "server", "start-dev", "--headless")
    options = ["--ip=127.0.0.1", f"--port={port}", f"--http-port={http_port}", "--log-level=warn"]
    options += [f"--dynamic-config-value={setting}" for setting in configuration]
    return spawn((*command, *options), directory / "temporal.log")


def _becomes_ready(server: TemporalServer) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        if _answers(server):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _answers(server: TemporalServer) -> bool:
    """Return whether both ports are open and the namespace exists."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=5)
    try:
        connection.request("GET", "/api/v1/namespaces/default")
        with socket.create_connection(("127.0.0.1", server.port), timeout=5):
            return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
