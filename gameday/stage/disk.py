"""A small disk for the homes that can be filled completely and freed again."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The image is sparse and the ballast only reserved, so they take almost no space on the real disk.
SIZE_BYTES = 1024 * 1024 * 1024
BALLAST = ".ballast"
BLOCK_BYTES = 4_096
OTHER_SIZE_BYTES = 1024 * 1024


class SmallDisk:
    """A mounted ext4 file system in a file."""

    def __init__(self, mounted_at: Path) -> None:
        self.path = mounted_at
        self._ballast = mounted_at / BALLAST
        self._is_swapped = False

    def is_full(self) -> bool:
        return self._ballast.exists()

    def fill(self) -> None:
        """Use all free space; space that others free later stays free."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = SIZE_BYTES
            while size >= BLOCK_BYTES:
                if not _extend(descriptor, size):
                    size //= 2
        finally:
            os.close(descriptor)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def is_swapped(self) -> bool:
        return self._is_swapped

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Mount a small empty disk over this one; open files stay open."""
        mounted = _run(
            "mount", "-t", "tmpfs", "-o", f"size={OTHER_SIZE_BYTES},mode=700", "other", str(self.path)
        )
        if not mounted:
            raise OSError(errno.EBUSY, "cannot mount another disk over the homes")
        self._is_swapped = True
        try:
            yield
        finally:
            # Lazily, because a process may be using it.
            _run("umount", "--lazy", str(self.path))
            self._is_swapped = False

    @contextmanager
    def full(self) -> Iterator[None]:
        try:
            self.fill()
            yield
        finally:
            self.free()


@contextmanager
def mounted_disk(image: Path, mount_point: Path) -> Iterator[SmallDisk | None]:
    """Mount a small disk; yield None without root or loop devices. The image is kept."""
    if not _mount(image, mount_point):
        image.unlink(missing_ok=True)
        yield None
        return
    try:
        yield SmallDisk(mount_point)
    finally:
        # Lazily, because a leftover process of an instance may still use it.
        _run("umount", "--lazy", str(mount_point))


def _mount(image: Path, mount_point: Path) -> bool:
    if os.geteuid() != 0:
        return False
    mount_point.mkdir(mode=0o700, parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    # Reserve no blocks for root, who could otherwise always write.
    made = _run("mkfs.ext4", "-q", "-m", "0", str(image))
    if not made or not _run("mount", "-o", "loop", str(image), str(mount_point)):
        return False
    with suppress(OSError):
        (mount_point / "lost+found").rmdir()
    return True


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603
    except OSError:
        return False


def _extend(descriptor: int, size: int) -> bool:
    try:
        os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return False
        raise
    return True
