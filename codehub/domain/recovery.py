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
    """How to recover from lost or damaged data, or go on while a home is out of reach.

    Any other error offers only RETRY.
    """

    RETRY = "retry"
    WAIT = "wait"
    RESTORE_ARCHIVE = "restore_archive"
    USE_DISK = "use_disk"
    START_EMPTY = "start_empty"


# Errors in which a person may choose another archive.
CHOOSES_ARCHIVE = frozenset({ErrorReason.DATA_LOST, ErrorReason.ARCHIVE_CORRUPTED})
# They give nothing up.
HARMLESS = frozenset({RecoverChoice.RETRY, RecoverChoice.WAIT})


class RecoverVerdict(StrEnum):
    """What to do with a choice, given a fresh observation; WAIT is for a provider that is silent."""

    CARRY_OUT = "CARRY_OUT"
    WAIT = "WAIT"
    REFUSE = "REFUSE"


@dataclass(frozen=True)
class Recovery:
    """The row after a recovery; the next observation computes its phase."""

    snapshot: Snapshot
    remove_container: bool = False
    # Archives that were not chosen stay until the workspace is deleted, so that the person can still choose.
    keep_archives: bool = False


def choices(snapshot: Snapshot, *, has_other_archives: bool = False) -> tuple[RecoverChoice, ...]:
    """Return what *recover* accepts in this state; nothing without an error or a lost node.

    `has_other_archives` says that there are archives other than the current one.
    """
    if snapshot.purge:
        return ()
    if snapshot.conditions.home_is_out_of_reach:
        # The home may come back, so a person can exchange it only for what it was made from.
        restore = (RecoverChoice.RESTORE_ARCHIVE,) if can_restore_current(snapshot) else ()
        return (RecoverChoice.WAIT, *restore)
    if snapshot.conditions.healthy.status is not Status.FALSE:
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
    """Return whether the current archive may be chosen; a damaged one is restored only by `retry`."""
    gone = snapshot.conditions.archive_ready.reason == Reason.GONE
    return snapshot.archive_key is not None and not gone and not _is_damaged(snapshot)


def judge_choice(
    snapshot: Snapshot, choice: RecoverChoice, named: ArchiveFact | None = None
) -> RecoverVerdict:
    """Judge an earlier choice by a fresh observation, also of the archive that it names."""
    if choice is RecoverChoice.WAIT or (named is None and _only_archive_is_left(snapshot, choice)):
        return RecoverVerdict.CARRY_OUT
    if snapshot.conditions.home_is_out_of_reach:
        return _judge_out_of_reach(snapshot, choice, named)
    if named is ArchiveFact.ABSENT:
        return RecoverVerdict.REFUSE
    if choice in choices(snapshot, has_other_archives=named is not None):
        return RecoverVerdict.WAIT if named is ArchiveFact.UNREACHABLE else RecoverVerdict.CARRY_OUT
    as_if_all_responded = replace(snapshot, unreachable=())
    later = choices(as_if_all_responded, has_other_archives=named is not None)
    return RecoverVerdict.WAIT if choice in later else RecoverVerdict.REFUSE


def must_set_aside(snapshot: Snapshot, choice: RecoverChoice) -> bool:
    """Return whether this choice has to set the volume on the lost node aside before it is carried out.

    Nothing of the old home can be reached then, so the archive must have been seen in this observation.
    """
    seen = not {Resource.CONTAINER, Resource.ARCHIVE} & set(snapshot.unreachable)
    chosen = choice is RecoverChoice.RESTORE_ARCHIVE and choice in choices(snapshot)
    out_of_reach = snapshot.conditions.home_is_out_of_reach
    return chosen and out_of_reach and seen and snapshot.conditions.archive_ready.is_true


def note_obstacle(snapshot: Snapshot, obstacle: str) -> Snapshot:
    """Say beside the lost node why its volume could not be set aside yet."""
    reach = snapshot.conditions.volume_reachable
    explained = replace(reach, message=f"{reach.message} {obstacle}")
    return replace(snapshot, conditions=replace(snapshot.conditions, volume_reachable=explained))


def recover(snapshot: Snapshot, choice: RecoverChoice, archive_key: str | None = None) -> Recovery:
    """Clear the error. A loss stays recorded until a person accepts it: `retry` only observes again.

    `archive_key` is the archive to restore if it is not the current one.
    """
    named = ArchiveFact.PRESENT if archive_key else None
    if judge_choice(snapshot, choice, named) is not RecoverVerdict.CARRY_OUT:
        raise ValueError(f"cannot recover with {choice} here")
    cleared = replace(snapshot, error_reason=None, error_message=None, error_count=0)
    if choice in HARMLESS or (archive_key is None and _only_archive_is_left(snapshot, choice)):
        stray = snapshot.error_reason is ErrorReason.CONTAINER_WITHOUT_VOLUME
        return Recovery(cleared, remove_container=stray)
    accepted = replace(
        cleared,
        conditions=_accept_loss(snapshot.conditions),
        archive_key=_archive_after(snapshot, choice, archive_key),
        restore_marker=_marker_after(snapshot, choice),
    )
    return Recovery(accepted, remove_container=True, keep_archives=True)


def _judge_out_of_reach(
    snapshot: Snapshot, choice: RecoverChoice, named: ArchiveFact | None
) -> RecoverVerdict:
    """Let the last archive wait until the volume is set aside; then its home is seen as lost, not before."""
    if choice in HARMLESS:
        return RecoverVerdict.CARRY_OUT
    possible = named is None and choice in choices(snapshot)
    return RecoverVerdict.WAIT if possible else RecoverVerdict.REFUSE


def _only_archive_is_left(snapshot: Snapshot, choice: RecoverChoice) -> bool:
    """Return whether nothing has to be given up for the archive any more.

    That is so after a half-restored volume was set aside: its absence is no loss.
    """
    absent = snapshot.conditions.volume_ready.reason == Reason.ABSENT
    in_reach = not snapshot.conditions.home_is_out_of_reach
    chosen = choice is RecoverChoice.RESTORE_ARCHIVE and can_restore_current(snapshot)
    return chosen and absent and in_reach and not snapshot.purge


def _archive_after(snapshot: Snapshot, choice: RecoverChoice, archive_key: str | None) -> str | None:
    return (archive_key or snapshot.archive_key) if choice is RecoverChoice.RESTORE_ARCHIVE else None


def _marker_after(snapshot: Snapshot, choice: RecoverChoice) -> str | None:
    """Mark a volume that is replaced by an empty home: what it holds must not be taken for one."""
    replaces = choice is RecoverChoice.START_EMPTY and snapshot.conditions.volume_exists
    return DISCARDED if replaces else None


def _sees_loss(snapshot: Snapshot) -> bool:
    """Return whether files are lost according to a provider that responds; files that are back are not."""
    conditions = snapshot.conditions
    if snapshot.error_reason is not ErrorReason.DATA_LOST:
        return False
    if conditions.volume_ready.reason == Reason.VANISHED:
        return _has_observed_disk(snapshot)
    only_copy_is_gone = (
        conditions.archive_ready.reason == Reason.GONE and conditions.volume_ready.status is Status.FALSE
    )
    return only_copy_is_gone and not snapshot.unreachable


def _sees_damage(snapshot: Snapshot) -> bool:
    """Return whether the archive is damaged and the volume does not hold a complete home."""
    incomplete = snapshot.conditions.volume_ready.status is Status.FALSE
    return _is_damaged(snapshot) and incomplete and _has_observed_disk(snapshot)


def _is_damaged(snapshot: Snapshot) -> bool:
    return snapshot.error_reason is ErrorReason.ARCHIVE_CORRUPTED


def _has_observed_disk(snapshot: Snapshot) -> bool:
    return not {Resource.CONTAINER, Resource.VOLUME} & set(snapshot.unreachable)


def _accept_loss(conditions: Conditions) -> Conditions:
    """Forget the vanished volume and what was observed of the archive, so that both are judged again."""
    vanished = conditions.volume_ready.reason == Reason.VANISHED
    volume = replace(conditions.volume_ready, reason=Reason.ABSENT) if vanished else conditions.volume_ready
    return replace(conditions, volume_ready=volume, archive_ready=NOT_OBSERVED)
