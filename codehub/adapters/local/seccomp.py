"""A seccomp filter that refuses the system calls that no workspace needs."""

import errno
import os
import platform
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_KILL_PROCESS, _ALLOW = 0x8000_0000, 0x7FFF_0000
_REFUSE = 0x0005_0000
# Offsets in the kernel's `struct seccomp_data`, on little-endian machines.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_LOAD, _RETURN, _EQUAL, _AT_LEAST = 0x20, 0x06, 0x15, 0x35
# x86-64 also accepts the numbers of the x32 ABI, with this bit.
_X32 = 0x4000_0000
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
# Other families, such as vsock, have no namespaces, so they would bypass the egress gateway.
_ADDRESS_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)


class Architecture(NamedTuple):
    """The kernel's name of an architecture, and the position of its numbers in the table."""

    audit: int
    column: int


ARCHITECTURES = {"x86_64": Architecture(0xC000_003E, 0), "aarch64": Architecture(0xC000_00B7, 1)}
IOCTL, SOCKET = (16, 29), (41, 198)
# The numbers on x86-64 and on aarch64. Debuggers need ptrace, so it stays.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # Keys belong to users of the machine, not to namespaces.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Large parts of the kernel with a history of vulnerabilities.
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "modify_ldt": (154, None),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # These need capabilities that no workspace has.
    "acct": (163, 89),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "init_module": (175, 105),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    # Mounts, old and new.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
}


class UnsupportedMachine(Exception):
    """There is no filter for this architecture."""


@contextmanager
def open_filter() -> Iterator[int]:
    """Yield a descriptor of the filter, for one process to read."""
    descriptor = os.memfd_create("seccomp")
    try:
        os.write(descriptor, assemble(platform.machine()))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def assemble(machine: str) -> bytes:
    """Return the filter for `struct sock_filter[]`, or raise UnsupportedMachine."""
    if machine not in ARCHITECTURES:
        raise UnsupportedMachine(machine)
    return b"".join(_instructions(ARCHITECTURES[machine]))


def _instructions(architecture: Architecture) -> Iterator[bytes]:
    column = architecture.column
    yield _instruction(_LOAD, _ARCHITECTURE)
    # On another architecture, such as for 32-bit programs, numbers mean other calls.
    yield _instruction(_EQUAL, architecture.audit, if_true=1)
    yield _instruction(_RETURN, _KILL_PROCESS)
    yield _instruction(_LOAD, _NUMBER)
    yield _instruction(_AT_LEAST, _X32, if_false=1)
    yield _instruction(_RETURN, _REFUSE | errno.ENOSYS)
    for numbers in REFUSED.values():
        if (number := numbers[column]) is not None:
            yield _instruction(_EQUAL, number, if_false=1)
            yield _instruction(_RETURN, _REFUSE | errno.EPERM)
    # The kernel reads 32 bits of these arguments, and so does the filter.
    yield _instruction(_EQUAL, IOCTL[column], if_false=2 + 2 * len(_TERMINAL_INPUT))
    yield _instruction(_LOAD, _SECOND_ARGUMENT)
    for request in _TERMINAL_INPUT:
        yield _instruction(_EQUAL, request, if_false=1)
        yield _instruction(_RETURN, _REFUSE | errno.EPERM)
    yield _instruction(_RETURN, _ALLOW)
    yield _instruction(_EQUAL, SOCKET[column], if_false=2 + len(_ADDRESS_FAMILIES))
    yield _instruction(_LOAD, _FIRST_ARGUMENT)
    for left, family in zip(range(len(_ADDRESS_FAMILIES), 0, -1), _ADDRESS_FAMILIES, strict=True):
        yield _instruction(_EQUAL, family, if_true=left)
    yield _instruction(_RETURN, _REFUSE | errno.EAFNOSUPPORT)
    yield _instruction(_RETURN, _ALLOW)


def _instruction(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one instruction; a jump skips that many of the following ones."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
