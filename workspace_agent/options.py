"""The agent's options, which the launcher passes as JSON in an environment variable."""

import contextlib
import json
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

VARIABLE = "CODEHUB_AGENT"


@dataclass(frozen=True)
class Options:
    """`sockets` is the directory of the sockets, `ide_socket` the file name of the IDE's.

    `services` has the options of each service by name. Without options, the agent only runs the IDE.
    """

    sockets: str = ""
    ide_socket: str = ""
    services: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)


def take_options(environment: MutableMapping[str, str]) -> Options:
    """Parse the options and remove them from the environment: the IDE does not need them."""
    return Options(**json.loads(environment.pop(VARIABLE, "{}")))


# The kernel's limit, including the final NUL.
LONGEST_SOCKET_PATH = 107


def socket_path(directory: str, name: str) -> str:
    """Return a free path for a socket in this directory that is short enough for the kernel.

    A shortened path works only for this process and its children, while this process lives.
    """
    path = os.path.join(directory, name)  # noqa: PTH118 (this program starts in milliseconds)
    # A restarted container still has its old socket.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/{os.getpid()}/fd/{descriptor}/{name}"
