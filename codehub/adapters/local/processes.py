"""The processes of an instance: start them, find them by a marker, and end them."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

MARKER = "CODEHUB_INSTANCE"
_PROC = Path("/proc")
_OWN_NAMESPACE = "/proc/self/ns/pid"
# Children that we have to reap one day; forgetting one would leave a zombie, not more.
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Member:
    """One process of an instance."""

    pid: int
    session: int
    sandboxed: bool
    # Changes when the parent ends, so it is no part of who a process is.
    parent: int = field(default=0, compare=False)


def spawn(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: int, life: int
) -> None:
    """Start in a session of its own, tied to us by nothing, so that it outlives us."""
    child = subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=directory,
        env=environment,
        pass_fds=(life,),
        start_new_session=True,
    )
    _children.append(child)


def reap() -> None:
    """Collect the children that have ended."""
    for child in list(_children):
        if child.poll() is not None:
            with contextlib.suppress(ValueError):
                _children.remove(child)


def find_members(marker: str) -> set[Member]:
    """Every process with this marker in its environment, and who shares a session or a sandbox with one.

    The sandbox covers processes that emptied their environment, the session most of them where there is none.
    """
    reap()
    own_session, own_namespace = os.getsid(0), os.readlink(_OWN_NAMESPACE)  # noqa: PTH115 (not a path)
    everyone = list(_running())
    marked = [each for each in everyone if _has_marker(each.pid, marker)]
    sessions = {each.session for each in marked} - {own_session}
    namespaces = {each.namespace for each in marked} - {own_namespace}
    return {
        Member(each.pid, each.session, each.namespace != own_namespace, each.parent)
        for each in everyone
        if each.session in sessions or each.namespace in namespaces
    }


def outermost(members: set[Member]) -> set[Member]:
    """The IDE itself, or the sandbox around it: both end when the IDE does."""
    inside = {member.pid for member in members}
    return {member for member in members if not member.sandboxed and member.parent not in inside}


def send(marker: str, number: signal.Signals, chosen: set[Member]) -> None:
    """Signal those of the chosen that are still who they were."""
    with contextlib.ExitStack() as stack:
        handles = {member: handle for member in chosen if (handle := _open(member.pid, stack)) is not None}
        # Looked at again with the handles open: from here on an id cannot mean another process.
        for member in find_members(marker) & handles.keys():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[member], number)


def _open(pid: int, stack: contextlib.ExitStack) -> int | None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    stack.callback(os.close, handle)
    return handle


class _Process(NamedTuple):
    pid: int
    parent: int
    session: int
    namespace: str


def _running() -> Iterator[_Process]:
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal() and entry.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                # The name before it may contain anything, also spaces and brackets.
                state, parent, _, session, *_ = (
                    (_PROC / entry.name / "stat").read_text(errors="replace").rpartition(")")[2].split()
                )
                namespace = os.readlink(_PROC / entry.name / "ns" / "pid")  # noqa: PTH115 (not a path)
                if state != "Z":
                    yield _Process(int(entry.name), int(parent), int(session), namespace)


def _has_marker(pid: int, marker: str) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARKER}={marker}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


POLL_SECONDS = 0.03


async def end(marker: str, *, grace: float, timeouts: float) -> None:
    """Return once no process of the instance is left."""
    members = await asyncio.to_thread(find_members, marker)
    if members:
        # The sandbox's outer process would end at once and leave its inside running: ask only those inside.
        asked = {member for member in members if member.sandboxed} or members
        await asyncio.to_thread(send, marker, signal.SIGTERM, asked)
        members = await _outwait(marker, members, grace)
    deadline = _now() + timeouts
    while members:
        if _now() > deadline:
            pids = ", ".join(str(member.pid) for member in members)
            raise Transient(ErrorReason.ACTION_FAILED, f"The instance does not end (processes {pids}).")
        await asyncio.to_thread(send, marker, signal.SIGKILL, members)
        await asyncio.sleep(POLL_SECONDS)
        members = await asyncio.to_thread(find_members, marker)


async def _outwait(marker: str, members: set[Member], grace: float) -> set[Member]:
    """Who is left when the grace is over or the IDE has ended; its children have no say in that."""
    # If somebody has killed the outer process, those inside still have their grace.
    ide = outermost(members) or members
    deadline = _now() + grace
    while members & ide and _now() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        members = await asyncio.to_thread(find_members, marker)
    return members


def _now() -> float:
    return asyncio.get_running_loop().time()
