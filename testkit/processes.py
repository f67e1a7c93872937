"""Waiting for the end of processes that are not our children, without asking again and again."""

import os
import select
from collections.abc import Iterable

import psutil

PATIENCE_SECONDS = 120.0


def wait_until_ended(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after a generous time; one that init has not collected yet has ended."""
    return [process for process in processes if not _ends(process)]


def _ends(process: psutil.Process) -> bool:
    if not process.is_running():
        return True
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        # It becomes readable when the process ends.
        return bool(select.select([descriptor], [], [], PATIENCE_SECONDS)[0])
    finally:
        os.close(descriptor)


def family_of(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]
