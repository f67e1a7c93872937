"""A child process of the supervisor: its description, its status and how it is started."""

import asyncio
import ctypes
import os
import pwd
import signal
import subprocess
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

KEPT_LOGS = 3
PR_SET_PDEATHSIG = 1
TAIL_BYTES = 16_384

# Loaded here, because nothing can be imported between fork and exec.
_libc = ctypes.CDLL(None)


async def _prepare_nothing() -> None:
    pass


def _remove_nothing() -> None:
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
    """Checks once whether the child can serve, without waiting for it."""

    environment: Mapping[str, str] = field(repr=False, default_factory=dict)
    prepare: Callable[[], Awaitable[None]] = _prepare_nothing
    """Runs before every start, so it must be idempotent."""

    remove_leftovers: Callable[[], None] = _remove_nothing
    """Runs after every exit, also after a crash."""

    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10
    start_seconds: float = 60
    death_signal: signal.Signals = signal.SIGKILL
    """Sent by the kernel when the supervisor dies."""

    external_setting: str = ""
    """The setting that names an external server instead of this child."""


class ChildState(StrEnum):
    """The state of a child."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILING = "failing"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXTERNAL = "external"


@dataclass(frozen=True)
class ChildStatus:
    """The current state of a child, for people."""

    name: str
    title: str
    address: str
    state: ChildState
    since: datetime
    pid: int | None = None
    note: str = ""


StatusListener = Callable[[ChildStatus], None]


class CannotPrepare(Exception):
    """A child cannot be prepared; the message is for a person."""


class StartFailed(Exception):
    """A child did not become ready; the message is for a person."""

    def __init__(self, child: Child, reason: str, log: Path) -> None:
        super().__init__(f"{child.title} did not start: {reason}.")
        self.child = child
        self.log = log


async def spawn(child: Child, log: Path) -> Process:
    """Start the child. It cannot outlive this process, and its output goes to the log."""
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *child.command,
            cwd=child.directory,
            env=dict(child.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Runs after the change of user, which would clear the signal.
            preexec_fn=die_with_parent(child.death_signal),
            **user_options(child.user),
        )


def user_options(user: str | None) -> dict[str, Any]:
    """Return the subprocess options that switch to this user and its group only."""
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def signal_group(process: Process, number: signal.Signals) -> None:
    """Signal a child and the processes in its group. Do nothing if all of them are gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def rotate(log: Path) -> None:
    """Begin a new log and keep the last few."""
    older = [log, *(log.with_name(f"{log.name}.{number}") for number in range(1, KEPT_LOGS + 1))]
    for source, target in reversed(list(pairwise(older))):
        with suppress(FileNotFoundError):
            source.replace(target)
    log.touch(mode=0o600)


def last_lines(log: Path, count: int) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except OSError:
        return []


def die_with_parent(number: signal.Signals, parent: int | None = None) -> Callable[[], None]:
    """Return a preexec function: the kernel then sends the child this signal when our process dies."""
    expected = parent or os.getpid()

    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, number)
        # The parent may have died before the line above.
        if os.getppid() != expected:
            os._exit(1)

    return prepare
