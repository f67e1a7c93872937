"""A real Redis for tests, in memory, on a free port of the loopback interface."""

import contextlib
import ctypes
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

START_SECONDS = 30
POLL_SECONDS = 0.01
ATTEMPTS = 3
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class RedisServer:
    """One server, which can be killed and started again on the same port."""

    def __init__(self, directory: Path, port: int) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._directory = directory
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Return once it answers; False if it has ended instead."""
        self._process = process = self._spawn()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if self._answers():
                return True
            time.sleep(POLL_SECONDS)
        return False

    def kill(self) -> None:
        """End it at once; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _spawn(self) -> subprocess.Popen[bytes]:
        program = Path(sys.executable).with_name("redis-server")
        options = ("--bind", "127.0.0.1", "--port", str(self._port), "--save", "", "--dir", self._directory)
        with (self._directory / "redis.log").open("ab") as log:
            return subprocess.Popen(
                (program, *options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A killed test run must not leave its server behind.
                preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509
            )

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False


@contextlib.contextmanager
def running_redis(directory: Path) -> Iterator[RedisServer]:
    """Start a server that is gone, with all it holds, at the end."""
    server = _start(directory)
    try:
        yield server
    finally:
        server.kill()


def _start(directory: Path) -> RedisServer:
    for _ in range(ATTEMPTS):
        server = RedisServer(directory, _free_port())
        if server.start():
            return server
        # Somebody took the port meanwhile.
        server.kill()
    raise RuntimeError(f"Redis did not start; its log is in {directory}")


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port
