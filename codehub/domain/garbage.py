"""Which archives may be removed, and when."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.domain.naming import ArchiveName
from codehub.domain.states import ErrorReason, Phase

GRACE = timedelta(hours=2)
UNDELETE_PERIOD = timedelta(days=7)


@dataclass(frozen=True)
class ArchiveOwner:
    """What the collector looks at of a workspace."""

    phase: Phase
    archive_key: str | None
    archive_op_id: str | None
    error_reason: ErrorReason | None
    deleted_at: datetime | None = None
    purge: bool = False
    # Archives that a person's *recover* left behind.
    given_up: frozenset[str] = frozenset()
    # The store does not have its current archive: an older one may be the last copy of its files.
    archive_missing: bool = False


@dataclass(frozen=True)
class GracePeriods:
    """How long archives are kept: one that nothing needs, and the last one of a deleted workspace."""

    orphan: timedelta = GRACE
    undelete: timedelta = UNDELETE_PERIOD


def is_protected(
    key: str, name: ArchiveName, owner: ArchiveOwner | None, now: datetime, graces: GracePeriods
) -> bool:
    """Whether something may still need this archive; while a deletion is under way or stuck, it may."""
    if owner is None:
        return False
    if owner.phase is Phase.DELETED:
        needed = key == owner.archive_key or owner.archive_missing
        return needed and _can_come_back(owner, now, graces)
    if owner.phase is Phase.ERROR or owner.error_reason is not None:
        return True
    if owner.archive_missing or key in owner.given_up:
        return True
    return key == owner.archive_key or name.archive_op_id == owner.archive_op_id


def may_collect(orphan_since: datetime, now: datetime, graces: GracePeriods) -> bool:
    """The grace runs from the moment when it was first seen as an orphan."""
    return now - orphan_since >= graces.orphan


def _can_come_back(owner: ArchiveOwner, now: datetime, graces: GracePeriods) -> bool:
    """A purge cannot be taken back; any other deletion can, for the undelete period."""
    if owner.deleted_at is None or owner.purge:
        return False
    return now < owner.deleted_at + graces.undelete
