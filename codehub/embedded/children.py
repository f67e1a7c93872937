"""What the supervisor needs to know of a child process, and what it tells about it."""

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path


async def _nothing_to_prepare() -> None:
    pass


def _nothing_to_remove() -> None:
    pass


@dataclass(frozen=True)
class Child:
    """A program to keep running in the foreground, in a session of its own."""

    name: str
    title: str
    command: tuple[str, ...]
    directory: Path
    address: str
    is_ready: Callable[[], Awaitable[bool]]
    """Looks once, soon; False as long as it cannot serve."""

    environment: Mapping[str, str] = field(repr=False, default_factory=dict)
    prepare: Callable[[], Awaitable[None]] = _nothing_to_prepare
    """Runs before every start, so it can be run again."""

    remove_leftovers: Callable[[], None] = _nothing_to_remove
    """Runs after every end, however it came about."""

    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10
    start_seconds: float = 60
    death_signal: signal.Signals = signal.SIGKILL
    """Sent by the kernel when the supervisor dies."""

    instead: str = ""
    """The setting that makes this child unnecessary."""


class ChildState(StrEnum):
    """Where a child is in its life."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILING = "failing"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXTERNAL = "external"


@dataclass(frozen=True)
class Status:
    """What is known of a child right now."""

    name: str
    title: str
    address: str
    state: ChildState
    since: datetime
    pid: int | None = None
    note: str = ""


Observer = Callable[[Status], None]


class CannotPrepare(Exception):
    """What a child needs cannot be made; the message is for a person."""


class StartFailed(Exception):
    """A child did not become ready; the message is for a person."""

    def __init__(self, child: Child, reason: str, log: Path) -> None:
        super().__init__(f"{child.title} did not start: {reason}.")
        self.child = child
        self.log = log
