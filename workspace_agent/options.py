"""What the launcher tells the agent, as JSON in one environment variable."""

import contextlib
import json
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

VARIABLE = "CODEHUB_AGENT"


@dataclass(frozen=True)
class Options:
    """`sockets` is the directory of our sockets, `ide_socket` the name of the IDE's.

    `services` has the options of each service by its name. Without options, the agent only runs the IDE.
    """

    sockets: str = ""
    ide_socket: str = ""
    services: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)


def take_options(environment: MutableMapping[str, str]) -> Options:
    """Parse the options and remove them from the environment: the IDE does not need them."""
    return Options(**json.loads(environment.pop(VARIABLE, "{}")))


# The kernel's limit, with the final zero.
LONGEST_SOCKET_PATH = 107


def socket_path(directory: str, name: str) -> str:
    """Return a path for a socket in this directory that is free and short enough for the kernel.

    The other path works while this process lives, for it and for the processes that it starts.
    """
    path = os.path.join(directory, name)  # noqa: PTH118 (this program starts in milliseconds)
    # A container that is started again finds its earlier socket.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/{os.getpid()}/fd/{descriptor}/{name}"
