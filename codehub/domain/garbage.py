"""Which archives may be removed, and when."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.domain.naming import ArchiveName
from codehub.domain.states import ErrorReason, Phase

GRACE = timedelta(hours=2)
UNDELETE_PERIOD = timedelta(days=7)


@dataclass(frozen=True)
class ArchiveOwner:
    """What the collector knows about the workspace of an archive."""

    phase: Phase
    archive_key: str | None
    archive_op_id: str | None
    error_reason: ErrorReason | None
    deleted_at: datetime | None = None
    purge: bool = False
    # Archives that a recovery left behind.
    given_up: frozenset[str] = frozenset()
    # The store lacks the current archive, so an older one may be the last copy of the files.
    archive_missing: bool = False


@dataclass(frozen=True)
class GracePeriods:
    """How long to keep an archive that nothing needs, and the last archive of a deleted workspace."""

    orphan: timedelta = GRACE
    undelete: timedelta = UNDELETE_PERIOD


def is_protected(
    key: str, name: ArchiveName, owner: ArchiveOwner | None, now: datetime, periods: GracePeriods
) -> bool:
    """Return whether something may still need this archive.

    All archives are protected while the workspace is in an error, and while its deletion has failed.
    """
    if owner is None:
        return False
    if owner.phase is Phase.DELETED:
        needed = key == owner.archive_key or owner.archive_missing
        return needed and _can_undelete(owner, now, periods)
    if owner.phase is Phase.ERROR or owner.error_reason is not None:
        return True
    if owner.archive_missing or key in owner.given_up:
        return True
    return key == owner.archive_key or name.archive_op_id == owner.archive_op_id


def may_collect(orphan_since: datetime, now: datetime, periods: GracePeriods) -> bool:
    """Return whether the grace period of an orphan is over; it starts when the orphan is first seen."""
    return now - orphan_since >= periods.orphan


def _can_undelete(owner: ArchiveOwner, now: datetime, periods: GracePeriods) -> bool:
    if owner.deleted_at is None:
        # Earlier versions left the phase DELETED after an undelete, until the next observation.
        return True
    return not owner.purge and now < owner.deleted_at + periods.undelete
