"""Finds the TCP ports that programs in the instance listen on, by reading /proc."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass

TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
LISTENING = "0A"
# The forwarder connects to these addresses. Others do not count, such as that of Docker's DNS server.
REACHABLE = ("0.0.0.0", "127.0.0.1", "::", "::1", "::ffff:127.0.0.1")  # noqa: S104


@dataclass(frozen=True)
class ListeningPort:
    """A listening port and the name of its program, or None if that cannot be read."""

    port: int
    process: str | None


def find_listening_ports(marker: str = "") -> list[ListeningPort]:
    """Return the ports in order; with a marker, only those of processes whose environment contains it."""
    sockets = {inode: port for table in TABLES for inode, port in _read_table(table)}
    names = _name_processes(sockets, marker.encode())
    found = {port: names.get(port) for port in sockets.values() if port in names or not marker}
    return [ListeningPort(port, found[port]) for port in sorted(found)]


def _read_table(path: str) -> Iterator[tuple[str, int]]:
    """Yield inode and port of each listening socket."""
    try:
        with open(path, encoding="ascii") as table:  # noqa: PTH123 (this program starts in milliseconds)
            lines = table.readlines()[1:]
    except FileNotFoundError:
        # A kernel without IPv6.
        return
    for line in lines:
        fields = line.split()
        address, _, port = fields[1].rpartition(":")
        if fields[3] == LISTENING and address in _REACHABLE:
            yield fields[9], int(port, 16)


def _name_processes(sockets: dict[str, int], marker: bytes) -> dict[int, str]:
    """Return the process name of each port whose process can be read."""
    names: dict[int, str] = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208
        # The process may have ended, or belong to another user.
        with contextlib.suppress(OSError):
            held = _held_ports(pid, sockets) - names.keys()
            if held and marker in _read(f"/proc/{pid}/environ").split(b"\0"):
                names |= dict.fromkeys(held, _read(f"/proc/{pid}/comm").decode(errors="replace").strip())
    return names


def _held_ports(pid: str, sockets: dict[str, int]) -> set[int]:
    held = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115
            if target.startswith("socket:[") and (port := sockets.get(target[8:-1])):
                held.add(port)
    return held


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def _as_in_table(address: str) -> str:
    """Return the address as the kernel prints it: numbers of 32 bits, each in the machine's byte order."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    groups = (packed[start : start + 4] for start in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(group, sys.byteorder):08X}" for group in groups)


_REACHABLE = frozenset(map(_as_in_table, REACHABLE))
