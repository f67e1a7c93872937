"""What a running `codehub up` tells other commands, and whether it really runs."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime

import psutil

from codehub.embedded.child_process import ChildState, Status
from codehub.embedded.data_dir import DataDir, read_json, write_private

# A process is the same if it began at the same time, within what the kernel's clock ticks allow.
SAME_START_SECONDS = 0.1


class AlreadyRunning(Exception):
    """Somebody else has this data directory."""

    def __init__(self, data: DataDir, pid: int | None) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"CodeHub already runs on {data.root} ({who}).")


@dataclass(frozen=True)
class RunningStack:
    """The supervisor and its parts, as they were when something last changed."""

    pid: int
    started: float
    parts: tuple[Status, ...]
    urls: Mapping[str, str]
    instance_backend: str | None
    """What runs workspaces; None if nothing does."""

    def supervisor(self) -> psutil.Process | None:
        """The process, unless the number now belongs to another one."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < SAME_START_SECONDS
        except psutil.NoSuchProcess:
            return None
        return process if same else None


@contextmanager
def locked(data: DataDir) -> Iterator[None]:
    """Hold the data directory; the kernel lets go of it when this process dies."""
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
            # Shared, so that two who ask do not take each other for somebody who runs.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def write_state(
    data: DataDir, parts: Sequence[Status], urls: Mapping[str, str], instance_backend: str | None = None
) -> None:
    content = {
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "parts": [{**asdict(part), "since": part.since.isoformat()} for part in parts],
        "urls": dict(urls),
        "instance_backend": instance_backend,
    }
    write_private(data.state, json.dumps(content, indent=2))


def read_running(data: DataDir) -> RunningStack | None:
    """The stack that runs on this directory now; None if there is none."""
    recorded = _read(data)
    if recorded is None or not is_locked(data) or recorded.supervisor() is None:
        return None
    return recorded


def _read(data: DataDir) -> RunningStack | None:
    content = read_json(data.state)
    try:
        parts = tuple(_part(each) for each in content["parts"])
        backend = content.get("instance_backend")
        return RunningStack(content["pid"], content["started"], parts, content["urls"], backend)
    except (KeyError, TypeError, ValueError):
        return None


def _part(content: Mapping[str, str]) -> Status:
    since = datetime.fromisoformat(content["since"])
    pid = int(content["pid"]) if content["pid"] else None
    return Status(
        name=content["name"],
        title=content["title"],
        address=content["address"],
        state=ChildState(content["state"]),
        since=since,
        pid=pid,
        note=content["note"],
    )
