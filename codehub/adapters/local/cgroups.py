"""Limits instances with control groups (versions 1 and 2) where this process may create them."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_MICROSECONDS = 100_000


@dataclass(frozen=True)
class Limits:
    """The most that one instance can use."""

    memory_bytes: int = 2_147_483_648
    cpus: float = 2.0
    processes: int = 1024

    @property
    def cpu_quota(self) -> int:
        return int(self.cpus * PERIOD_MICROSECONDS)


def create_cgroups(name: str, limits: Limits) -> dict[str, Path]:
    """Create groups for a process to join, by controller; skip controllers that are not permitted."""
    if os.geteuid() != 0:
        return {}
    return _create_unified(name, limits) if (ROOT / "cgroup.controllers").exists() else _create(name, limits)


def remove_cgroups(name: str) -> None:
    """Remove the groups of an instance that has ended."""
    for group in (ROOT / _directory(name), *(parent / _directory(name) for parent in _parents().values())):
        with contextlib.suppress(OSError):
            group.rmdir()


def _create_unified(name: str, limits: Limits) -> dict[str, Path]:
    group = ROOT / _directory(name)
    values = {
        "memory.max": str(limits.memory_bytes),
        "cpu.max": f"{limits.cpu_quota} {PERIOD_MICROSECONDS}",
        "pids.max": str(limits.processes),
    }
    # In a container, this group contains processes, so the kernel refuses.
    with contextlib.suppress(OSError):
        (ROOT / "cgroup.subtree_control").write_text("+memory +cpu +pids")
    return {"": group} if _make(group, values) else {}


def _create(name: str, limits: Limits) -> dict[str, Path]:
    values = {
        "memory": {"memory.limit_in_bytes": str(limits.memory_bytes)},
        "cpu": {
            "cpu.cfs_period_us": str(PERIOD_MICROSECONDS),
            "cpu.cfs_quota_us": str(limits.cpu_quota),
        },
        "pids": {"pids.max": str(limits.processes)},
    }
    groups = {kind: parent / _directory(name) for kind, parent in _parents().items() if kind in values}
    return {kind: group for kind, group in groups.items() if _make(group, values[kind])}


def _make(group: Path, values: Mapping[str, str]) -> bool:
    try:
        group.mkdir(exist_ok=True)
        for file, value in values.items():
            (group / file).write_text(value)
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        return False
    return True


def _parents() -> dict[str, Path]:
    """Return this process's own version 1 groups, so that its limits also apply to instances."""
    return dict(_read_parents())


def _read_parents() -> Iterator[tuple[str, Path]]:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for kind in controllers.split(","):
            mounted = ROOT / kind
            own = mounted / path.removeprefix("/")
            # In a container, this can be a path on the host.
            if kind and mounted.is_dir():
                yield kind, own if own.is_dir() else mounted


def _directory(name: str) -> str:
    return f"codehub-{name[:32]}"
