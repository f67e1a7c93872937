"""Start processes that never outlive the test run, find free ports, and wait for processes to end."""

import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from codehub.embedded.free_ports import choose_ports

WAIT_SECONDS = 120.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def spawn(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that appends its output to the log and is killed when this process ends."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def free_ports(count: int) -> tuple[int, ...]:
    """Return distinct free ports, reserved for this process among all test runs."""
    return tuple(choose_ports(map(str, range(count)), {}).values())


def free_port() -> int:
    return free_ports(1)[0]


def wait_until_ended(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Wait for processes that need not be our children; return those that still run. A zombie has ended."""
    return [process for process in processes if not _ends(process)]


def _ends(process: psutil.Process) -> bool:
    if not process.is_running():
        return True
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        # The descriptor becomes readable when the process ends.
        return bool(select.select([descriptor], [], [], WAIT_SECONDS)[0])
    finally:
        os.close(descriptor)


def process_tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]
