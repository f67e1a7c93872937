"""Homes as directories."""

import contextlib
import fcntl
import logging
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from codehub.adapters.local import instance_files
from codehub.adapters.local.disk_usage import measure_directories
from codehub.adapters.local.locks import is_locked, try_lock
from codehub.adapters.local.owners import Owners
from codehub.adapters.local.root import PRIVATE, LocalRoot, sync_directory
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient, within_reach
from codehub.domain.naming import parse_volume_name
from codehub.domain.states import ErrorReason
from codehub.ports import Measurement


def remove_tree(path: Path) -> None:
    """Remove a directory tree even if parts of it are read-only. Succeed if it does not exist."""
    try:
        shutil.rmtree(path, onerror=_make_writable_and_retry)
    except RecursionError:
        # Deeper than Python's stack. By now all directories on the way down are writable.
        command = ("rm", "-rf", "--", path)
        run = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 (a trusted path)
        if run.returncode != 0:
            raise OSError(run.stderr.strip()) from None


def _make_writable_and_retry(function: Callable[..., object], path: str, error: object) -> None:
    if isinstance(error, tuple) and isinstance(error[1], FileNotFoundError):
        return
    failed = Path(path)
    if function in (os.unlink, os.rmdir):
        _make_writable(failed.parent)
        failed.unlink(missing_ok=True) if function is os.unlink else failed.rmdir()
    else:
        # Opening or listing a directory failed.
        _make_writable(failed)
        shutil.rmtree(failed)


def _make_writable(directory: Path) -> None:
    directory.chmod(stat.S_IMODE(directory.stat().st_mode) | stat.S_IRWXU)


TRASH_PREFIX = ".trash-"
_log = logging.getLogger(__name__)


class LocalVolumes:
    """A volume is a directory. A removal renames it first, so it disappears at once."""

    def __init__(self, root: Path) -> None:
        self._root = LocalRoot.at(root)

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        path = self._root.volume(workspace_id)
        present = await self._root.run(lambda: volume_exists(path))
        return VolumeFact.PRESENT if present else VolumeFact.ABSENT

    async def list_all(self) -> Sequence[WorkspaceId]:
        return await self._root.run(self._list)

    async def provision(self, workspace_id: WorkspaceId) -> None:
        path = self._root.volume(workspace_id)
        await self._root.run(lambda: create_volume(path))

    async def remove(self, workspace_id: WorkspaceId) -> None:
        path = self._root.volume(workspace_id)
        await self._root.run(lambda: self._remove(workspace_id, path))

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        """Refuse: all homes are below one root, and while it is unmounted nobody knows what it holds."""
        if await self.observe(workspace_id) is VolumeFact.PRESENT:
            raise within_reach()

    async def measure(self, workspace_id: WorkspaceId, seconds: float) -> Measurement | None:
        """Measure the home and the other directories that the instance can write to."""
        if await self.observe(workspace_id) is VolumeFact.ABSENT:
            return None
        paths = (self._root.volume(workspace_id), self._root.instance(workspace_id))
        return await measure_directories(paths, seconds)

    def _list(self) -> list[WorkspaceId]:
        names = [
            entry.name for entry in os.scandir(self._root.volumes) if entry.is_dir(follow_symlinks=False)
        ]
        if any(name.startswith(TRASH_PREFIX) for name in names):
            self._empty_trash()
        return [found for name in names if (found := parse_volume_name(name)) is not None]

    def _remove(self, workspace_id: WorkspaceId, path: Path) -> None:
        with self._locked_while_unused(workspace_id), contextlib.suppress(FileNotFoundError):
            path.rename(self._root.volumes / f"{TRASH_PREFIX}{path.name}-{secrets.token_hex(8)}")
        Owners(self._root, None).forget(workspace_id)
        self._empty_trash()

    @contextlib.contextmanager
    def _locked_while_unused(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """Lock the volume. Raise Transient while a job or an instance uses it."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(try_lock(self._root.locks / f"{workspace_id}.job"))
                stack.enter_context(try_lock(self._root.locks / f"{workspace_id}.instance"))
            except BlockingIOError as error:
                raise _in_use("a job or an operation uses it") from error
            instance = self._root.instance(workspace_id)
            if instance_files.state_exists(instance) or is_locked(instance / instance_files.LOCK_NAME):
                raise _in_use("an instance uses it")
            yield

    def _empty_trash(self) -> None:
        """Delete removed volumes, also those that a crash left, but not those being deleted elsewhere."""
        for trash in self._root.volumes.glob(f"{TRASH_PREFIX}*"):
            try:
                with _locked_directory(trash):
                    remove_tree(trash)
            except (FileNotFoundError, BlockingIOError):
                continue
            except OSError as error:
                # It no longer counts as a volume, so it must not block listings and removals.
                _log.warning("The removed volume %s cannot be deleted: %s", trash, error)


def volume_exists(path: Path) -> bool:
    """Return whether the volume exists. Unlike Path.is_dir, raise on disk errors."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def create_volume(path: Path) -> None:
    path.mkdir(mode=PRIVATE, exist_ok=True)
    # A volume that disappears in a power failure would count as lost data.
    sync_directory(path.parent)


@contextlib.contextmanager
def _locked_directory(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _in_use(why: str) -> Transient:
    return Transient(ErrorReason.ACTION_FAILED, f"The volume cannot be removed now: {why}.")
