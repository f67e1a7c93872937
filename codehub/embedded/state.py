"""The state file of a running `codehub up`, which other commands read."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime

import psutil

from codehub.embedded.child_process import ChildState, ChildStatus
from codehub.embedded.data_dir import DataDir, read_json, write_private

# Two start times within this difference are the same; the kernel counts in clock ticks.
SAME_START_SECONDS = 0.1


class AlreadyRunning(Exception):
    """Another process uses this data directory."""

    def __init__(self, data: DataDir, pid: int | None) -> None:
        process = f"process {pid}" if pid else "another process"
        super().__init__(f"CodeHub already runs on {data.root} ({process}).")


@dataclass(frozen=True)
class RunningStack:
    """The supervisor and its children, as of the last change."""

    pid: int
    started: float
    parts: tuple[ChildStatus, ...]
    urls: Mapping[str, str]
    instance_backend: str | None
    """The backend that runs workspaces, or None before it is chosen."""

    def supervisor(self) -> psutil.Process | None:
        """Return the process, or None if it is gone or its id belongs to another one now."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < SAME_START_SECONDS
        except psutil.NoSuchProcess:
            return None
        return process if same else None


@contextmanager
def lock_data_dir(data: DataDir) -> Iterator[None]:
    """Lock the data directory; the kernel releases it when this process dies."""
    with data.lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            recorded = _read(data)
            raise AlreadyRunning(data, recorded.pid if recorded else None) from None
        yield


def is_locked(data: DataDir) -> bool:
    try:
        with data.lock.open("a") as file:
            # A shared lock, so that two checks at once do not mistake each other for a running CodeHub.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def write_state(
    data: DataDir, parts: Sequence[ChildStatus], urls: Mapping[str, str], instance_backend: str | None = None
) -> None:
    content = {
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "parts": [{**asdict(part), "since": part.since.isoformat()} for part in parts],
        "urls": dict(urls),
        "instance_backend": instance_backend,
    }
    write_private(data.state, json.dumps(content, indent=2))


def read_running_stack(data: DataDir) -> RunningStack | None:
    """Return the stack that runs on this directory, or None."""
    recorded = _read(data)
    if recorded is None or not is_locked(data) or recorded.supervisor() is None:
        return None
    return recorded


def _read(data: DataDir) -> RunningStack | None:
    content = read_json(data.state)
    try:
        parts = tuple(_parse_status(each) for each in content["parts"])
        backend = content.get("instance_backend")
        return RunningStack(content["pid"], content["started"], parts, content["urls"], backend)
    except (KeyError, TypeError, ValueError):
        return None


def _parse_status(content: Mapping[str, str]) -> ChildStatus:
    since = datetime.fromisoformat(content["since"])
    pid = int(content["pid"]) if content["pid"] else None
    return ChildStatus(
        name=content["name"],
        title=content["title"],
        address=content["address"],
        state=ChildState(content["state"]),
        since=since,
        pid=pid,
        note=content["note"],
    )
