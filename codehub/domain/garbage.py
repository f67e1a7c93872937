"""Which archives may be removed, and when."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.domain.naming import ArchiveName
from codehub.domain.states import ErrorReason, Phase

GRACE = timedelta(hours=2)


@dataclass(frozen=True)
class ArchiveOwner:
    """What the collector looks at of a workspace."""

    phase: Phase
    archive_key: str | None
    archive_op_id: str | None
    error_reason: ErrorReason | None
    # Archives that a person's *recover* left behind.
    given_up: frozenset[str] = frozenset()


def is_protected(key: str, name: ArchiveName, owner: ArchiveOwner | None) -> bool:
    """Whether something may still need this archive; while a deletion is under way or stuck, it may."""
    if owner is None or owner.phase is Phase.DELETED:
        return False
    if owner.phase is Phase.ERROR or owner.error_reason is not None:
        return True
    if key in owner.given_up:
        return True
    return key == owner.archive_key or name.archive_op_id == owner.archive_op_id


def may_collect(orphan_since: datetime, now: datetime, grace: timedelta = GRACE) -> bool:
    """The grace runs from the moment when it was first seen as an orphan."""
    return now - orphan_since >= grace
