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

MARKER_VARIABLE = "CODEHUB_INSTANCE"
_PROC = Path("/proc")
_OWN_NAMESPACE = "/proc/self/ns/pid"
# Children to reap; a forgotten one only stays a zombie.
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class InstanceProcess:
    """One process of an instance."""

    pid: int
    session: int
    sandboxed: bool
    # Not compared: it changes when the parent ends.
    parent: int = field(default=0, compare=False)


def spawn(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    log: int,
    descriptors: Sequence[int],
) -> None:
    """Start a process in a session of its own, so that it outlives this one."""
    child = subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=directory,
        env=environment,
        pass_fds=descriptors,
        start_new_session=True,
    )
    _children.append(child)


def reap() -> None:
    """Reap children that have exited."""
    for child in list(_children):
        if child.poll() is not None:
            with contextlib.suppress(ValueError):
                _children.remove(child)


def find_processes(marker: str) -> set[InstanceProcess]:
    """Return the processes with this marker in their environment, and all in their sessions or sandboxes.

    A process can empty its environment. Its sandbox still gives it away; without a sandbox, its session does
    in most cases.
    """
    reap()
    own_session, own_namespace = os.getsid(0), os.readlink(_OWN_NAMESPACE)  # noqa: PTH115 (not a path)
    running = list(_running())
    marked = [each for each in running if _has_marker(each.pid, marker)]
    sessions = {each.session for each in marked} - {own_session}
    namespaces = {each.namespace for each in marked} - {own_namespace}
    return {
        InstanceProcess(each.pid, each.session, each.namespace != own_namespace, each.parent)
        for each in running
        if each.session in sessions or each.namespace in namespaces
    }


def root_processes(processes: set[InstanceProcess]) -> set[InstanceProcess]:
    """Return the process of the IDE, or of the sandbox around it: both end with the IDE."""
    pids = {each.pid for each in processes}
    return {each for each in processes if not each.sandboxed and each.parent not in pids}


def send_signal(marker: str, number: signal.Signals, chosen: set[InstanceProcess]) -> None:
    """Signal the chosen processes that still belong to the instance."""
    with contextlib.ExitStack() as stack:
        handles = {each: handle for each in chosen if (handle := _open(each.pid, stack)) is not None}
        # Search again with the handles open: from now on no id can be reused.
        for each in find_processes(marker) & handles.keys():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[each], number)


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
                # Split after the process name, which can contain spaces and brackets.
                state, parent, _, session, *_ = (
                    (_PROC / entry.name / "stat").read_text(errors="replace").rpartition(")")[2].split()
                )
                namespace = os.readlink(_PROC / entry.name / "ns" / "pid")  # noqa: PTH115 (not a path)
                if state != "Z":
                    yield _Process(int(entry.name), int(parent), int(session), namespace)


def _has_marker(pid: int, marker: str) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARKER_VARIABLE}={marker}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(
            b"\0"
        )
    return False


POLL_SECONDS = 0.03


async def terminate(marker: str, *, grace: float, kill_timeout: float) -> None:
    """Send SIGTERM, then SIGKILL after the grace. Return when no process of the instance is left."""
    processes = await asyncio.to_thread(find_processes, marker)
    if processes:
        # The outer process of a sandbox exits at once and leaves the inner ones running, so signal those.
        signaled = {each for each in processes if each.sandboxed} or processes
        await asyncio.to_thread(send_signal, marker, signal.SIGTERM, signaled)
        processes = await _wait_for_exit(marker, processes, grace)
    deadline = _now() + kill_timeout
    while processes:
        if _now() > deadline:
            pids = ", ".join(str(each.pid) for each in processes)
            raise Transient(ErrorReason.ACTION_FAILED, f"The instance does not end (processes {pids}).")
        await asyncio.to_thread(send_signal, marker, signal.SIGKILL, processes)
        await asyncio.sleep(POLL_SECONDS)
        processes = await asyncio.to_thread(find_processes, marker)


async def _wait_for_exit(marker: str, processes: set[InstanceProcess], grace: float) -> set[InstanceProcess]:
    """Wait until the IDE has exited or the grace is over. Return the processes that are left."""
    # Without an outer process, which may have been killed, the inner ones still get their grace.
    ide = root_processes(processes) or processes
    deadline = _now() + grace
    while processes & ide and _now() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        processes = await asyncio.to_thread(find_processes, marker)
    return processes


def _now() -> float:
    return asyncio.get_running_loop().time()
