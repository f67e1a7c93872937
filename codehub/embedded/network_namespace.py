"""Moves this process into a new network namespace, which has only a loopback interface."""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1

_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceRefused(Exception):
    """The kernel refuses a network namespace; the message is for a person."""


def enter_network_namespace() -> None:
    """Leave the host's network. Open sockets stay in it; new ones belong to the namespace.

    A new user namespace makes this possible without privileges. The process must be single-threaded.
    """
    try:
        _unshare()
        _enable_loopback()
    except OSError as error:
        raise NamespaceRefused(
            f"This machine refuses a network namespace ({error.strerror}), so the embedded Temporal would be "
            "open to every local user. Allow user namespaces (sysctl user.max_user_namespaces and "
            "kernel.apparmor_restrict_unprivileged_userns), or set CODEHUB_TEMPORAL_ADDRESS to use an "
            "external server."
        ) from error


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # Map only this user and group, to the same ids, so that files keep their owners.
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")


def _enable_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
