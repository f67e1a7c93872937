"""A network that has nothing but its loopback interface, for a browser.

Chromium fails its requests whenever a network interface comes or goes, and containers, clusters and other
tests bring some to the host's network.
"""

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from testkit.needs import need_program, need_root

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class OwnNetwork:
    """A network namespace with a name."""

    name: str

    @property
    def _file(self) -> Path:
        return Path("/run/netns") / self.name

    def wrap(self, program: str, directory: Path) -> Path:
        """Write a script that runs the program in this network."""
        script = directory / Path(program).name
        script.write_text(f'#!/bin/sh\nexec nsenter --net={self._file} -- {program} "$@"\n')
        script.chmod(0o755)
        return script

    def listen(self, port: int) -> socket.socket:
        """Return a socket that listens on this network's loopback interface; this process accepts from it."""
        # A socket stays in the network in which it was created. Only this thread changes to it.
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(self._listen, port).result()

    def _listen(self, port: int) -> socket.socket:
        with self._file.open() as namespace:
            if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self._file))
        return socket.create_server(("127.0.0.1", port))


@contextmanager
def own_network() -> Iterator[OwnNetwork]:
    need_root()
    need_program("ip")
    need_program("nsenter")
    network = OwnNetwork(f"codehub-{uuid4().hex[:8]}")
    _ip("netns", "add", network.name)
    try:
        _ip("-n", network.name, "link", "set", "lo", "up")
        yield network
    finally:
        _ip("netns", "delete", network.name)


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True, capture_output=True)  # noqa: S607
