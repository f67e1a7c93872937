"""How a person may recover a workspace from an error."""

from dataclasses import dataclass, replace
from enum import StrEnum

from codehub.domain.conditions import (
    DISCARDED,
    NOT_OBSERVED,
    ArchiveFact,
    Conditions,
    Reason,
    Resource,
    Snapshot,
    Status,
)
from codehub.domain.states import ErrorReason


class RecoverChoice(StrEnum):
    """How to recover from lost or damaged data. Every other error offers only RETRY."""

    RETRY = "retry"
    RESTORE_ARCHIVE = "restore_archive"
    USE_DISK = "use_disk"
    START_EMPTY = "start_empty"


# Errors in which a person may go back to another archive.
CHOOSES_ARCHIVE = frozenset({ErrorReason.DATA_LOST, ErrorReason.ARCHIVE_CORRUPTED})


class RecoverVerdict(StrEnum):
    """What a fresh look makes of an earlier choice: do it, wait for who is silent, or do not."""

    CARRY_OUT = "CARRY_OUT"
    WAIT = "WAIT"
    REFUSE = "REFUSE"


@dataclass(frozen=True)
class Recovery:
    """The row after the decision; observation then recomputes the phase."""

    snapshot: Snapshot
    remove_container: bool = False
    # The archives that were not chosen stay until the workspace is deleted, for second thoughts.
    keep_archives: bool = False


def choices(snapshot: Snapshot, *, has_other_archives: bool = False) -> tuple[RecoverChoice, ...]:
    """What *recover* accepts in this state; nothing where there is no error to leave.

    `has_other_archives` says that there are archives besides the current one.
    """
    if snapshot.conditions.healthy.status is not Status.FALSE or snapshot.purge:
        return ()
    if not _sees_loss(snapshot) and not _sees_damage(snapshot):
        return (RecoverChoice.RETRY,)
    possible = {
        RecoverChoice.RETRY: True,
        RecoverChoice.RESTORE_ARCHIVE: has_other_archives or can_restore_current(snapshot),
        RecoverChoice.USE_DISK: snapshot.conditions.volume_exists,
        RecoverChoice.START_EMPTY: True,
    }
    return tuple(choice for choice, is_possible in possible.items() if is_possible)


def can_restore_current(snapshot: Snapshot) -> bool:
    """Whether the current archive is worth a try; a damaged one is restored only by `retry`."""
    gone = snapshot.conditions.archive_ready.reason == Reason.GONE
    return snapshot.archive_key is not None and not gone and not _is_damaged(snapshot)


def judge_choice(
    snapshot: Snapshot, choice: RecoverChoice, named: ArchiveFact | None = None
) -> RecoverVerdict:
    """Judge a choice that was made on an earlier look by a fresh one, also at the archive that it names."""
    if named is ArchiveFact.ABSENT:
        return RecoverVerdict.REFUSE
    if choice in choices(snapshot, has_other_archives=named is not None):
        return RecoverVerdict.WAIT if named is ArchiveFact.UNREACHABLE else RecoverVerdict.CARRY_OUT
    as_if_all_had_answered = replace(snapshot, unreachable=())
    later = choices(as_if_all_had_answered, has_other_archives=named is not None)
    return RecoverVerdict.WAIT if choice in later else RecoverVerdict.REFUSE


def recover(snapshot: Snapshot, choice: RecoverChoice, archive_key: str | None = None) -> Recovery:
    """Clear the error. A loss stays known until a person accepts it: `retry` only looks again.

    `archive_key` names the archive to go back to, where that is not the current one.
    """
    if choice not in choices(snapshot, has_other_archives=archive_key is not None):
        raise ValueError(f"cannot recover with {choice} here")
    cleared = replace(snapshot, error_reason=None, error_message=None, error_count=0)
    if choice is RecoverChoice.RETRY:
        stray = snapshot.error_reason is ErrorReason.CONTAINER_WITHOUT_VOLUME
        return Recovery(cleared, remove_container=stray)
    accepted = replace(
        cleared,
        conditions=_accept_loss(snapshot.conditions),
        archive_key=_archive_after(snapshot, choice, archive_key),
        restore_marker=_marker_after(snapshot, choice),
    )
    return Recovery(accepted, remove_container=True, keep_archives=True)


def _archive_after(snapshot: Snapshot, choice: RecoverChoice, archive_key: str | None) -> str | None:
    return (archive_key or snapshot.archive_key) if choice is RecoverChoice.RESTORE_ARCHIVE else None


def _marker_after(snapshot: Snapshot, choice: RecoverChoice) -> str | None:
    """A half-restored volume must not pass for an empty home: an empty archive is restored over it."""
    replaces = choice is RecoverChoice.START_EMPTY and snapshot.conditions.volume_exists
    return DISCARDED if replaces else None


def _sees_loss(snapshot: Snapshot) -> bool:
    """Nobody gives up files without a look at where they should be, nor files that are back."""
    conditions = snapshot.conditions
    if snapshot.error_reason is not ErrorReason.DATA_LOST:
        return False
    if conditions.volume_ready.reason == Reason.VANISHED:
        return _has_seen_disk(snapshot)
    only_copy_is_gone = (
        conditions.archive_ready.reason == Reason.GONE and conditions.volume_ready.status is Status.FALSE
    )
    return only_copy_is_gone and not snapshot.unreachable


def _sees_damage(snapshot: Snapshot) -> bool:
    """A complete home on the disk is not given up for the sake of an archive."""
    incomplete = snapshot.conditions.volume_ready.status is Status.FALSE
    return _is_damaged(snapshot) and incomplete and _has_seen_disk(snapshot)


def _is_damaged(snapshot: Snapshot) -> bool:
    return snapshot.error_reason is ErrorReason.ARCHIVE_CORRUPTED


def _has_seen_disk(snapshot: Snapshot) -> bool:
    return not {Resource.CONTAINER, Resource.VOLUME} & set(snapshot.unreachable)


def _accept_loss(conditions: Conditions) -> Conditions:
    """Forget the vanished volume and what was seen of the archive, so that both are judged afresh."""
    vanished = conditions.volume_ready.reason == Reason.VANISHED
    volume = replace(conditions.volume_ready, reason=Reason.ABSENT) if vanished else conditions.volume_ready
    return replace(conditions, volume_ready=volume, archive_ready=NOT_OBSERVED)
