"""What a person may decide: recover from an error, delete, take a deletion back."""

from dataclasses import dataclass, replace
from enum import StrEnum

from codehub.domain.conditions import NOT_OBSERVED, Conditions, Reason, Resource, Snapshot, Status
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase


class RecoverChoice(StrEnum):
    """What to do about lost data; everything else only knows RETRY."""

    RETRY = "retry"
    RESTORE_ARCHIVE = "restore_archive"
    START_EMPTY = "start_empty"


# For people who have to choose.
MEANINGS = {
    RecoverChoice.RETRY: "look for the files again and give up nothing",
    RecoverChoice.RESTORE_ARCHIVE: "go back to the last archive and give up what is newer",
    RecoverChoice.START_EMPTY: "begin with a new home and give up the archive too",
}


class Answer(StrEnum):
    """What a fresh look makes of an earlier choice: do it, wait for who is silent, or do not."""

    CARRY_OUT = "CARRY_OUT"
    WAIT = "WAIT"
    REFUSE = "REFUSE"


@dataclass(frozen=True)
class Recovery:
    """The row after the decision; observation then recomputes the phase."""

    snapshot: Snapshot
    remove_container: bool = False


def choices(snapshot: Snapshot) -> tuple[RecoverChoice, ...]:
    """What *recover* accepts in this state; nothing where there is no error to leave."""
    if snapshot.conditions.healthy.status is not Status.FALSE or snapshot.purge:
        return ()
    if snapshot.error_reason is not ErrorReason.DATA_LOST or not _sees_loss(snapshot):
        return (RecoverChoice.RETRY,)
    if snapshot.archive_key is None or snapshot.conditions.archive_ready.reason == Reason.GONE:
        return (RecoverChoice.RETRY, RecoverChoice.START_EMPTY)
    return tuple(RecoverChoice)


def answer(snapshot: Snapshot, choice: RecoverChoice) -> Answer:
    """Judge a choice that was made on an earlier look by a fresh one."""
    if choice in choices(snapshot):
        return Answer.CARRY_OUT
    as_if_all_had_answered = replace(snapshot, unreachable=())
    return Answer.WAIT if choice in choices(as_if_all_had_answered) else Answer.REFUSE


def recover(snapshot: Snapshot, choice: RecoverChoice) -> Recovery:
    """Clear the error. A loss stays known until a person accepts it: `retry` only looks again."""
    if choice not in choices(snapshot):
        raise ValueError(f"cannot recover with {choice} here")
    cleared = replace(snapshot, error_reason=None, error_message=None, error_count=0)
    if choice is RecoverChoice.RETRY:
        stray = snapshot.error_reason is ErrorReason.CONTAINER_WITHOUT_VOLUME
        return Recovery(cleared, remove_container=stray)
    accepted = replace(cleared, restore_marker=None, conditions=_accept_loss(snapshot.conditions))
    if choice is RecoverChoice.RESTORE_ARCHIVE:
        return Recovery(accepted, remove_container=True)
    # A leftover volume is not deleted: whatever it still holds is all there is.
    return Recovery(replace(accepted, archive_key=None), remove_container=True)


def is_purge(phase: Phase, *, requested: bool) -> bool:
    """A broken workspace cannot make a last archive, so deleting it is always a purge."""
    return requested or phase is Phase.ERROR


def request_deletion(snapshot: Snapshot, *, purge: bool) -> Snapshot:
    """From now on it is being deleted, with all attempts still to be made; a purge stays one."""
    purges = snapshot.purge or is_purge(snapshot.phase, requested=purge)
    return replace(
        snapshot,
        desired_state=DesiredState.DELETED,
        deleted=True,
        purge=purges,
        error_count=0,
        retry_at=None,
    )


def can_undelete(snapshot: Snapshot) -> bool:
    """What was purged may have left no archive of its newest files, so it does not come back."""
    return snapshot.deleted and not snapshot.purge and snapshot.operation is Operation.NONE


def undelete(snapshot: Snapshot) -> Snapshot:
    """Back to ARCHIVED, which the last archive serves."""
    if not can_undelete(snapshot):
        raise ValueError("this deletion cannot be taken back")
    return replace(snapshot, desired_state=DesiredState.ARCHIVED, deleted=False)


def _sees_loss(snapshot: Snapshot) -> bool:
    """Nobody gives up files without a look at where they should be, nor files that are back."""
    conditions = snapshot.conditions
    if conditions.volume_ready.reason == Reason.VANISHED:
        asked = {Resource.CONTAINER, Resource.VOLUME}
        return not asked & set(snapshot.unreachable)
    only_copy_is_gone = (
        conditions.archive_ready.reason == Reason.GONE and conditions.volume_ready.status is Status.FALSE
    )
    return only_copy_is_gone and not snapshot.unreachable


def _accept_loss(conditions: Conditions) -> Conditions:
    """Forget the vanished volume and what was seen of the archive, so that both are judged afresh."""
    vanished = conditions.volume_ready.reason == Reason.VANISHED
    volume = replace(conditions.volume_ready, reason=Reason.ABSENT) if vanished else conditions.volume_ready
    return replace(conditions, volume_ready=volume, archive_ready=NOT_OBSERVED)
