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
from codehub.adapters.local.locks import exclusive, is_alive
from codehub.adapters.local.root import PRIVATE, LocalRoot, sync_directory
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import parse_volume_name
from codehub.domain.states import ErrorReason


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it; nothing there is fine."""
    try:
        shutil.rmtree(path, onerror=_make_writable_and_retry)
    except RecursionError:
        # Deeper than Python's stack; by now everything on the way down may be changed.
        command = ("rm", "-rf", "--", path)
        run = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 (a path of ours)
        if run.returncode != 0:
            raise OSError(run.stderr.strip()) from None


def _make_writable_and_retry(function: Callable[..., object], path: str, error: object) -> None:
    if isinstance(error, tuple) and isinstance(error[1], FileNotFoundError):
        return
    place = Path(path)
    if function in (os.unlink, os.rmdir):
        _allow(place.parent)
        place.unlink(missing_ok=True) if function is os.unlink else place.rmdir()
    else:
        # Opening or listing a directory failed.
        _allow(place)
        shutil.rmtree(place)


def _allow(directory: Path) -> None:
    directory.chmod(stat.S_IMODE(directory.stat().st_mode) | stat.S_IRWXU)


TRASH_PREFIX = ".trash-"
_log = logging.getLogger(__name__)


class LocalVolumes:
    """A volume is a directory; what is being removed has another name from the first moment on."""

    def __init__(self, root: Path) -> None:
        self._root = LocalRoot.at(root)

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        path = self._root.volume(workspace_id)
        present = await self._root.run(lambda: is_volume(path))
        return VolumeFact.PRESENT if present else VolumeFact.ABSENT

    async def list_all(self) -> Sequence[WorkspaceId]:
        return await self._root.run(self._list)

    async def provision(self, workspace_id: WorkspaceId) -> None:
        path = self._root.volume(workspace_id)
        await self._root.run(lambda: make_volume(path))

    async def remove(self, workspace_id: WorkspaceId) -> None:
        path = self._root.volume(workspace_id)
        await self._root.run(lambda: self._remove(workspace_id, path))

    def _list(self) -> list[WorkspaceId]:
        names = [
            entry.name for entry in os.scandir(self._root.volumes) if entry.is_dir(follow_symlinks=False)
        ]
        if any(name.startswith(TRASH_PREFIX) for name in names):
            self._empty_trash()
        return [found for name in names if (found := parse_volume_name(name)) is not None]

    def _remove(self, workspace_id: WorkspaceId, path: Path) -> None:
        with self._unused(workspace_id), contextlib.suppress(FileNotFoundError):
            path.rename(self._root.volumes / f"{TRASH_PREFIX}{path.name}-{secrets.token_hex(8)}")
        self._empty_trash()

    @contextlib.contextmanager
    def _unused(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """Keep others from beginning to use it; raise while somebody does."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(exclusive(self._root.locks / f"{workspace_id}.job"))
                stack.enter_context(exclusive(self._root.locks / f"{workspace_id}.instance"))
            except BlockingIOError as error:
                raise _in_use("somebody is at work on it") from error
            instance = self._root.instance(workspace_id)
            if instance_files.exists(instance) or is_alive(instance / instance_files.LOCK_NAME):
                raise _in_use("an instance uses it")
            yield

    def _empty_trash(self) -> None:
        """Also what a crash has left; not what somebody else is removing right now."""
        for trash in self._root.volumes.glob(f"{TRASH_PREFIX}*"):
            try:
                with _claimed(trash):
                    remove_tree(trash)
            except (FileNotFoundError, BlockingIOError):
                continue
            except OSError as error:
                # It is no volume any more, so it must not keep others from being listed or removed.
                _log.warning("The removed volume %s cannot be deleted: %s", trash, error)


def is_volume(path: Path) -> bool:
    """Like Path.is_dir, which however takes some disk errors for absence."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def make_volume(path: Path) -> None:
    path.mkdir(mode=PRIVATE, exist_ok=True)
    # A volume that a power cut takes back would count as lost data.
    sync_directory(path.parent)


@contextlib.contextmanager
def _claimed(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _in_use(why: str) -> Transient:
    return Transient(ErrorReason.ACTION_FAILED, f"The volume cannot be removed now: {why}.")
