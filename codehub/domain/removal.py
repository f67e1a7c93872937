"""Which volumes may be removed: the only copy of a home goes by a purge and by nothing else."""

from codehub.domain.conditions import DISCARDED, ArchiveFact, Snapshot
from codehub.domain.states import Operation


def is_leftover(snapshot: Snapshot) -> bool:
    """Whether the archive holds the home: its key is committed and was not restored into the volume."""
    return snapshot.archive_key is not None and snapshot.restore_marker != snapshot.archive_key


def may_remove_archived_volume(snapshot: Snapshot, archive_key: str) -> bool:
    """ARCHIVING removes a volume once the key of this very archive is committed."""
    committed = snapshot.operation is Operation.ARCHIVING and snapshot.archive_key == archive_key
    return committed and is_leftover(snapshot)


def may_remove_volume(snapshot: Snapshot, archive: ArchiveFact) -> bool:
    """DELETING removes anything in a purge; otherwise only a leftover whose archive answers right now.

    What its owner gave up with `start_empty` may go too: there is nothing to keep.
    """
    if snapshot.operation is not Operation.DELETING or not snapshot.deleted:
        return False
    if snapshot.purge or (snapshot.archive_key is None and snapshot.restore_marker == DISCARDED):
        return True
    return is_leftover(snapshot) and archive is ArchiveFact.PRESENT
