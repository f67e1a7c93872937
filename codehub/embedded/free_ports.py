"""Chooses free ports of the loopback interface, and keeps them across restarts if possible."""

import random
import socket
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

LOOPBACK = "127.0.0.1"
LOWEST_PORT = 15000
EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
USUAL_FIRST_EPHEMERAL_PORT = 32768
ATTEMPTS = 1000

# Ports that this process has chosen. Another CodeHub here avoids them even before a server listens.
_reserved: set[int] = set()


class NoFreePort(Exception):
    """All tried ports are taken."""


def choose_ports(names: Iterable[str], remembered: Mapping[str, int]) -> dict[str, int]:
    """Return a different port for each name: the remembered one if it is free, or else another."""
    with ExitStack() as sockets:
        return {name: _choose_port(sockets, remembered.get(name)) for name in names}


def _choose_port(sockets: ExitStack, preferred: int | None) -> int:
    # Below the range for outgoing connections, which could take the port while its server restarts.
    candidates = range(LOWEST_PORT, _first_ephemeral_port())
    choices = random.choices(candidates, k=ATTEMPTS)  # noqa: S311 (not a secret)
    if preferred is not None and _listen(sockets, preferred):
        # Nothing listens there, so an existing reservation can only be this installation's.
        _reserve(preferred)
        return preferred
    for port in choices:
        if _listen(sockets, port) and _reserve(port):
            return port
    raise NoFreePort(f"no free port found between {candidates.start} and {candidates.stop}")


def _reserve(port: int) -> bool:
    """Reserve a port for the life of this process; return False if another process has it."""
    if port in _reserved:
        return True
    name = socket.socket(socket.AF_UNIX)
    try:
        # An abstract socket name belongs to the network namespace, like a port, and ends with the process.
        name.bind(f"\0codehub-port-{port}")
    except OSError:
        name.close()
        return False
    name.detach()
    _reserved.add(port)
    return True


def _listen(sockets: ExitStack, port: int) -> bool:
    """Listen until all ports are chosen. Return False if the port is taken, also by an earlier choice."""
    bound = sockets.enter_context(socket.socket())
    # Ignore closed connections that linger, but not a server that listens.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
        # Without this, another socket with the same option could bind the port too.
        bound.listen()
    except OSError:
        return False
    return True


def _first_ephemeral_port() -> int:
    try:
        first = int(EPHEMERAL_PORTS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return USUAL_FIRST_EPHEMERAL_PORT
    return first if first > LOWEST_PORT + ATTEMPTS else USUAL_FIRST_EPHEMERAL_PORT
