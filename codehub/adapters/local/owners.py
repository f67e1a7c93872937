"""Gives each workspace its own uid, which owns its home, if CodeHub runs as root."""

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from codehub.adapters.local.locks import lock_blocking, try_lock
from codehub.adapters.local.ownership import give_to
from codehub.adapters.local.root import PRIVATE, LocalRoot, sync_directory
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import ErrorReason

# Above the uid ranges of distributions, systemd and containers.
UIDS = range(1_900_000_000, 1_900_065_536)
_LOCK = "owners"
_ADOPTING = "adopting"


@dataclass(frozen=True)
class Owners:
    """The owner of a home's top directory is the record of its uid, so the two cannot disagree.

    A file in `adopting/` marks a home whose content may still belong to others. It exists before the first
    change and disappears after the last, so a start that was killed in between is finished by the next.
    """

    root: LocalRoot
    # None means that everything runs as the user of this process.
    uids: range | None

    def claim(self, workspace_id: WorkspaceId) -> int | None:
        """Return the workspace's uid and give it all files of the home, which must not be in use."""
        if self.uids is None:
            # Files that were written as root need a new owner when the home is used in a sandbox again.
            if os.geteuid() == 0:
                self.disown(workspace_id)
            return None
        home = self.root.volume(workspace_id)
        with lock_blocking(self.root.locks / _LOCK):
            uid = home.lstat().st_uid
            others = set(self._used(except_for=home))
            if uid not in self.uids or uid in others:
                self.disown(workspace_id)
                uid = self._choose(workspace_id, others)
                os.chown(home, uid, uid, follow_symlinks=False)
        if self._marker(workspace_id).exists():
            self._finish(workspace_id, home, uid)
        return uid

    def disown(self, workspace_id: WorkspaceId) -> None:
        """Record that files in the home may have other owners, such as after a restore."""
        marker = self._marker(workspace_id)
        marker.parent.mkdir(mode=PRIVATE, exist_ok=True)
        marker.touch(mode=0o600)
        sync_directory(marker.parent)

    def forget(self, workspace_id: WorkspaceId) -> None:
        self._marker(workspace_id).unlink(missing_ok=True)

    def _finish(self, workspace_id: WorkspaceId, home: Path, uid: int) -> None:
        try:
            with try_lock(self.root.locks / f"{workspace_id}.job"):
                give_to(home, uid)
        except BlockingIOError as error:
            raise Transient(ErrorReason.ACTION_FAILED, "A job is still using this volume.") from error
        self.forget(workspace_id)

    def _used(self, except_for: Path) -> Iterator[int]:
        # Include homes that are being removed.
        for entry in os.scandir(self.root.volumes):
            if entry.name != except_for.name:
                yield entry.stat(follow_symlinks=False).st_uid

    def _choose(self, workspace_id: WorkspaceId, used: set[int]) -> int:
        """Start at a number that depends on the installation, so that two on one machine rarely collide."""
        uids = self.uids or range(0)
        first = zlib.crc32(self.root.marker(workspace_id).encode()) % max(len(uids), 1)
        for uid in chain(uids[first:], uids[:first]):
            if uid not in used:
                return uid
        raise Permanent(
            ErrorReason.ACTION_FAILED,
            f"All {len(uids)} users for local workspaces are taken. Raise CODEHUB_LOCAL_UID_COUNT.",
        )

    def _marker(self, workspace_id: WorkspaceId) -> Path:
        return self.root.path / _ADOPTING / self.root.volume(workspace_id).name
