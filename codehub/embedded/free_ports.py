"""Free ports of the loopback interface, chosen once and kept while nobody else takes them."""

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

# Ports that this process has chosen; another CodeHub on this machine chooses others, even before ours listen.
_reserved: set[int] = set()


class NoFreePort(Exception):
    """Every port that was tried is taken."""


def choose_ports(names: Iterable[str], remembered: Mapping[str, int]) -> dict[str, int]:
    """A port for each name: the remembered one if it is free, else another; no port comes twice."""
    with ExitStack() as held:
        return {name: _take(held, remembered.get(name)) for name in names}


def _take(held: ExitStack, preferred: int | None) -> int:
    # Below the range for outgoing connections, or one of those could get the port while its child restarts.
    candidates = range(LOWEST_PORT, _first_ephemeral_port())
    choices = random.choices(candidates, k=ATTEMPTS)  # noqa: S311 (nothing secret about it)
    if preferred is not None and _hold(held, preferred):
        _reserve(preferred)  # whoever chose this port for us may have reserved it already
        return preferred
    for port in choices:
        if _hold(held, port) and _reserve(port):
            return port
    raise NoFreePort(f"no free port found between {candidates.start} and {candidates.stop}")


def _reserve(port: int) -> bool:
    """Reserve a port for the life of this process; return False if another process has it."""
    if port in _reserved:
        return True
    name = socket.socket(socket.AF_UNIX)
    try:
        # An abstract socket name is scoped to the network namespace, like a port, and freed with the process.
        name.bind(f"\0codehub-port-{port}")
    except OSError:
        name.close()
        return False
    name.detach()
    _reserved.add(port)
    return True


def _hold(held: ExitStack, port: int) -> bool:
    """Listen until all ports are known; False if somebody else has it, also if that is us."""
    bound = held.enter_context(socket.socket())
    # What lingers of closed connections does not count; a server that listens does.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
        # Bound alone, it could be bound a second time with that option.
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
