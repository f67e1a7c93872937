"""The control groups of the test cluster's nodes (cgroup v1)."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def _hierarchies() -> Iterator[Path]:
    for hierarchy in ROOT.iterdir():
        if hierarchy.is_dir() and not hierarchy.is_symlink():
            yield hierarchy


def create(name: str) -> None:
    for hierarchy in _hierarchies():
        if not (hierarchy / "tasks").exists():
            # The second version's, which may be mounted beside the others.
            continue
        (hierarchy / name).mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / setting).exists():
                # Empty in a new group, which can then hold no process.
                (hierarchy / name / setting).write_text((hierarchy / setting).read_text())


def remove(name: str) -> None:
    """Remove a group and those below it, once no process is in them."""
    for hierarchy in _hierarchies():
        for directory in sorted((hierarchy / name).rglob("*"), reverse=True):
            if directory.is_dir():
                directory.rmdir()
        with suppress(FileNotFoundError):
            (hierarchy / name).rmdir()
