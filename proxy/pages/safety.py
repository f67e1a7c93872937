"""Where a person's files are, for pages with bad news; they promise no more than is known."""

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
    """What a page can promise about the files."""

    ON_DISK = "ON_DISK"
    IN_ARCHIVE = "IN_ARCHIVE"
    OLDER_ARCHIVE = "OLDER_ARCHIVE"
    UNTOUCHED_ARCHIVE = "UNTOUCHED_ARCHIVE"
    UNTOUCHED = "UNTOUCHED"


@dataclass(frozen=True)
class KnownArchive:
    """The current archive, as its owner would recognize it."""

    made_at: datetime
    size: str


@dataclass(frozen=True)
class ChoosableArchive:
    """An archive that a person can restore; unknown properties are None."""

    archive_op_id: UUID
    made_at: datetime | None
    size: str | None
    verified_at: datetime | None


def known_archive(view: WorkspaceView) -> KnownArchive | None:
    """Return the current archive, or None if it is gone."""
    if view.archived_at is None or view.archive_size_bytes is None:
        return None
    if view.conditions.archive_ready.reason == Reason.GONE:
        return None
    return KnownArchive(view.archived_at, format_size(view.archive_size_bytes))


def choosable(archive: ArchiveToRestore) -> ChoosableArchive:
    known_size = None if archive.size_bytes is None else format_size(archive.size_bytes)
    return ChoosableArchive(archive.archive_op_id, archive.created_at, known_size, archive.verified_at)


def safety(view: WorkspaceView) -> Safety | None:
    """Return what is known about the files; None while they are deleted, unless the deletion has failed."""
    if view.desired_state is DesiredState.DELETED and not view.lifecycle.needs_person:
        return None
    volume = view.conditions.volume_ready
    out_of_reach = view.lifecycle.out_of_reach
    if volume.is_true and not out_of_reach:
        return Safety.ON_DISK
    # The disk was not checked yet, and may hold newer files than the archive.
    if out_of_reach or volume.status is Status.UNKNOWN or known_archive(view) is None:
        return Safety.UNTOUCHED
    match view.error_reason:
        case ErrorReason.DATA_LOST:
            return Safety.OLDER_ARCHIVE
        case ErrorReason.ARCHIVE_CORRUPTED:
            return Safety.UNTOUCHED_ARCHIVE
    return Safety.IN_ARCHIVE
