"""The processes of Pods whose nodes are on this machine, found by their control groups."""

import os
import re
import signal
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
POD_GROUP = re.compile(rb"/pod([0-9a-f-]{36})/")
# The first process of each Pod, which does nothing.
PAUSE = "pause"


def pod_processes() -> dict[str, list[int]]:
    """Return the processes of all Pods by the Pod's uid, without those that do nothing."""
    found = defaultdict(list)
    for entry in os.scandir(PROC):
        if entry.name.isdecimal():
            # It may end meanwhile.
            with suppress(OSError):
                if (uid := _pod_of(entry.name)) and _name_of(entry.name) != PAUSE:
                    found[uid].append(int(entry.name))
    return dict(found)


def kill_processes(uid: str) -> bool:
    """Kill all processes of a Pod; return whether there were any."""
    pids = pod_processes().get(uid, [])
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def first_process(uid: str) -> int | None:
    """Return the process that started the others of a Pod, or None if none runs."""
    pids = set(pod_processes().get(uid, []))
    return next((pid for pid in sorted(pids) if _parent_of(pid) not in pids), None)


def _pod_of(pid: str) -> str | None:
    found = POD_GROUP.search((PROC / pid / "cgroup").read_bytes())
    return found[1].decode() if found else None


def _name_of(pid: str) -> str:
    return (PROC / pid / "comm").read_text().strip()


def _parent_of(pid: int) -> int:
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
