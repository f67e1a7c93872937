"""A real Redis for tests: in memory, on a free loopback port."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from testkit.processes import free_port, kill, spawn

START_SECONDS = 30
POLL_SECONDS = 0.01
ATTEMPTS = 3


class RedisServer:
    """A server that can be killed and started again on the same port."""

    def __init__(self, directory: Path, port: int) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._directory = directory
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Wait until the server answers; return False if it ended instead."""
        self._process = process = self._spawn()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if self._answers():
                return True
            time.sleep(POLL_SECONDS)
        return False

    def kill(self) -> None:
        """Kill the server; its data is lost."""
        if self._process is not None:
            kill(self._process)

    def _spawn(self) -> subprocess.Popen[bytes]:
        program = Path(sys.executable).with_name("redis-server")
        listen = ("--bind", "127.0.0.1", "--port", str(self._port))
        store = ("--save", "", "--dir", self._directory)
        return spawn((program, *listen, *store), self._directory / "redis.log")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False


@contextlib.contextmanager
def running_redis(directory: Path) -> Iterator[RedisServer]:
    """Run a server; its data is lost at the end."""
    server = _start(directory)
    try:
        yield server
    finally:
        server.kill()


def _start(directory: Path) -> RedisServer:
    for _ in range(ATTEMPTS):
        server = RedisServer(directory, free_port())
        if server.start():
            return server
        # Another process took the port.
        server.kill()
    raise RuntimeError(f"Redis did not start; its log is in {directory}")
