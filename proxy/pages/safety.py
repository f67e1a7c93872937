"""Where a person's files are: said on every page that brings bad news, and never more than is known."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from codehub.db.views import WorkspaceView
from codehub.domain.conditions import Reason, Status
from codehub.domain.states import DesiredState, ErrorReason
from codehub.formatting import format_size
from codehub.services.recovery import ArchiveToRestore


class Safety(StrEnum):
    """What can be promised."""

    ON_DISK = "ON_DISK"
    IN_ARCHIVE = "IN_ARCHIVE"
    OLDER_ARCHIVE = "OLDER_ARCHIVE"
    UNTOUCHED_ARCHIVE = "UNTOUCHED_ARCHIVE"
    UNTOUCHED = "UNTOUCHED"


@dataclass(frozen=True)
class KnownArchive:
    """The archive as its owner would recognise it."""

    made_at: datetime
    size: str


@dataclass(frozen=True)
class ChoosableArchive:
    """One that a person may go back to; what nobody knows of it is None."""

    archive_op_id: UUID
    made_at: datetime | None
    size: str | None
    verified_at: datetime | None


def known_archive(view: WorkspaceView) -> KnownArchive | None:
    """The current one; None where it is known to be gone."""
    if view.archived_at is None or view.archive_size_bytes is None:
        return None
    if view.conditions.archive_ready.reason == Reason.GONE:
        return None
    return KnownArchive(view.archived_at, format_size(view.archive_size_bytes))


def choosable(archive: ArchiveToRestore) -> ChoosableArchive:
    known_size = None if archive.size_bytes is None else format_size(archive.size_bytes)
    return ChoosableArchive(archive.archive_op_id, archive.created_at, known_size, archive.verified_at)


def safety(view: WorkspaceView) -> Safety | None:
    """None where files are being deleted; a deletion that failed deletes nothing before somebody decides."""
    if view.desired_state is DesiredState.DELETED and not view.lifecycle.needs_person:
        return None
    volume = view.conditions.volume_ready
    if volume.is_true:
        return Safety.ON_DISK
    # Nobody has looked at the disk yet: it may hold newer files than the archive.
    if volume.status is Status.UNKNOWN or known_archive(view) is None:
        return Safety.UNTOUCHED
    match view.error_reason:
        case ErrorReason.DATA_LOST:
            return Safety.OLDER_ARCHIVE
        case ErrorReason.ARCHIVE_CORRUPTED:
            return Safety.UNTOUCHED_ARCHIVE
    return Safety.IN_ARCHIVE
