"""A small disk of its own for the homes, which can be filled to the last block and freed again."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Sparse, and the ballast is only reserved: it takes next to nothing of the real disk.
SIZE_BYTES = 1024 * 1024 * 1024
BALLAST = ".ballast"
SMALLEST_PIECE_BYTES = 4_096
OTHER_SIZE_BYTES = 1024 * 1024


class SmallDisk:
    """An ext4 in a file, mounted for as long as the block lasts."""

    def __init__(self, mounted_at: Path) -> None:
        self.path = mounted_at
        self._ballast = mounted_at / BALLAST
        self._is_exchanged = False

    def is_full(self) -> bool:
        return self._ballast.exists()

    def fill(self) -> None:
        """Leave no room for anything; what others free meanwhile stays free."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            piece = SIZE_BYTES
            while piece >= SMALLEST_PIECE_BYTES:
                if not _extend(descriptor, piece):
                    piece //= 2
        finally:
            os.close(descriptor)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def is_exchanged(self) -> bool:
        return self._is_exchanged

    @contextmanager
    def exchanged(self) -> Iterator[None]:
        """Another disk, small and empty, is mounted over this one; whoever has a file open here keeps it."""
        mounted = _run(
            "mount", "-t", "tmpfs", "-o", f"size={OTHER_SIZE_BYTES},mode=700", "other", str(self.path)
        )
        if not mounted:
            raise OSError(errno.EBUSY, "another disk cannot be mounted over the homes")
        self._is_exchanged = True
        try:
            yield
        finally:
            # Lazily, since a process may look at it right now.
            _run("umount", "--lazy", str(self.path))
            self._is_exchanged = False

    @contextmanager
    def full(self) -> Iterator[None]:
        try:
            self.fill()
            yield
        finally:
            self.free()


@contextmanager
def mounted_disk(image: Path, mount_point: Path) -> Iterator[SmallDisk | None]:
    """None where it cannot be had: not root, or no loop devices. The image stays, with what is on it."""
    if not _mount(image, mount_point):
        image.unlink(missing_ok=True)
        yield None
        return
    try:
        yield SmallDisk(mount_point)
    finally:
        # Lazily: what is left of an instance must not keep the mount for ever.
        _run("umount", "--lazy", str(mount_point))


def _mount(image: Path, mount_point: Path) -> bool:
    if os.geteuid() != 0:
        return False
    mount_point.mkdir(mode=0o700, parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    # Without blocks that only root may use: as root, nothing would ever be full.
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
