"""Deletion: requesting it, undoing it, and which volumes may be removed."""

from dataclasses import replace
from enum import StrEnum

from codehub.domain.conditions import DISCARDED, ArchiveFact, Snapshot
from codehub.domain.states import DesiredState, Operation, Phase


class UndeleteRefusal(StrEnum):
    """Why a deletion cannot be undone."""

    NOT_DELETED = "NOT_DELETED"
    # A purge makes no last archive, so the newest files may be gone.
    PURGED = "PURGED"
    NO_ARCHIVE = "NO_ARCHIVE"


def request_deletion(snapshot: Snapshot, *, purge: bool) -> Snapshot:
    """Return the row with its deletion requested, or the same row if that changes nothing.

    A deletion gets all its attempts, whatever failed before it. A broken workspace cannot make a last
    archive, so deleting it is a purge, and a purge stays a purge.
    """
    purges = purge or snapshot.purge or snapshot.phase is Phase.ERROR
    if snapshot.deleted and purges is snapshot.purge:
        return snapshot
    return replace(
        snapshot,
        desired_state=DesiredState.DELETED,
        deleted=True,
        purge=purges,
        error_count=0,
        retry_at=None,
        waiting_for=(),
        waiting_since=None,
    )


def undelete_refusal(snapshot: Snapshot) -> UndeleteRefusal | None:
    """Return why the deletion cannot be undone, or None if it can."""
    if not snapshot.deleted:
        return UndeleteRefusal.NOT_DELETED
    if snapshot.purge:
        return UndeleteRefusal.PURGED
    if snapshot.phase is Phase.DELETED and snapshot.archive_key is None:
        return UndeleteRefusal.NO_ARCHIVE
    return None


def undelete(snapshot: Snapshot) -> Snapshot:
    """Return the row with its deletion undone; after a finished deletion it is ARCHIVED at once."""
    if undelete_refusal(snapshot) is not None or snapshot.operation is not Operation.NONE:
        raise ValueError("this deletion cannot be undone")
    return replace(
        snapshot,
        phase=Phase.ARCHIVED if snapshot.phase is Phase.DELETED else snapshot.phase,
        desired_state=DesiredState.ARCHIVED,
        deleted=False,
        waiting_for=(),
        waiting_since=None,
    )


def is_leftover(snapshot: Snapshot) -> bool:
    """Whether the archive holds the home: its key is committed and it was not restored into the volume."""
    return snapshot.archive_key is not None and snapshot.restore_marker != snapshot.archive_key


def may_remove_archived_volume(snapshot: Snapshot, archive_key: str) -> bool:
    """Whether ARCHIVING may remove the volume: only once the key of this archive is committed."""
    committed = snapshot.operation is Operation.ARCHIVING and snapshot.archive_key == archive_key
    return committed and is_leftover(snapshot)


def may_remove_volume(snapshot: Snapshot, archive: ArchiveFact) -> bool:
    """Whether DELETING may remove the volume: any in a purge, else a leftover whose archive exists right now.

    A volume that its owner discarded with `start_empty` may go too.
    """
    if snapshot.operation is not Operation.DELETING or not snapshot.deleted:
        return False
    if snapshot.purge or (snapshot.archive_key is None and snapshot.restore_marker == DISCARDED):
        return True
    return is_leftover(snapshot) and archive is ArchiveFact.PRESENT
