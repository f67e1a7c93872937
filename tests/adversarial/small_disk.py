"""Mount a small file system, to test full disks and immutable files."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.needs import do_without_mounts, need_program, need_root

MIB = 1024 * 1024
DISK_MIB = 32


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """Mount an ext4 file system; skip the test where mounting is not allowed."""
    need_root()
    for program in ("mkfs.ext4", "mount", "chattr"):
        need_program(program)
    image, mounted = directory / "disk.img", directory / "disk"
    with image.open("wb") as file:
        file.truncate(DISK_MIB * MIB)
    mounted.mkdir()
    # -m 0: without blocks reserved for root, or the disk would never be full for root.
    run("mkfs.ext4", "-q", "-m", "0", str(image))
    if subprocess.run(("/usr/bin/env", "mount", "-o", "loop", image, mounted), check=False).returncode != 0:
        do_without_mounts()
    try:
        (mounted / "lost+found").rmdir()
        yield mounted
    finally:
        run("umount", str(mounted))
        image.unlink()


def run(*command: str) -> None:
    subprocess.run(("/usr/bin/env", *command), check=True)


def free_bytes(path: Path) -> int:
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize


def fill(path: Path, leave: int = 0) -> None:
    """Write a file that leaves at most this many bytes free."""
    with path.open("wb", buffering=0) as file:
        try:
            while free_bytes(path.parent) > leave:
                file.write(bytes(min(MIB, max(4096, free_bytes(path.parent) - leave))))
        except OSError:
            os.fsync(file.fileno())
