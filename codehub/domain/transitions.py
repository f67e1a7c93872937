"""How the row changes: claim, commit, settle, fail. Each is a pure step that one transaction stores."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from codehub.domain import naming
from codehub.domain.completion import is_complete
from codehub.domain.conditions import NOT_OBSERVED, Reason, Resource, Snapshot, Status
from codehub.domain.failures import purge_delay_seconds, retry_delay_seconds
from codehub.domain.judge import conclude
from codehub.domain.planner import NEEDS, must_release, needs_upload
from codehub.domain.states import ErrorReason, Operation


@dataclass(frozen=True)
class Settlement:
    """How an attempt ended: the row to store, and the wait before the next attempt if there is one."""

    snapshot: Snapshot
    retry_after_seconds: float | None = None


def claim(snapshot: Snapshot, operation: Operation, new_archive_op_id: str) -> Snapshot:
    """Begin an operation; it is stored only if none is claimed (compare-and-set)."""
    if snapshot.operation is not Operation.NONE:
        raise ValueError(f"{snapshot.operation} is still claimed")
    claimed = replace(snapshot, operation=operation)
    if operation is Operation.RESTORING:
        # An old marker would make a half-restored volume look complete.
        return replace(claimed, restore_marker=None)
    if operation is Operation.CREATE_EMPTY_ARCHIVE or needs_upload(claimed):
        # Each claim gets a new id: an object of an earlier, failed operation may be older than the home.
        return replace(claimed, archive_op_id=new_archive_op_id)
    return claimed


def release(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Give the claim back if the operation waits for a provider and has destroyed nothing."""
    if not must_release(snapshot):
        return snapshot
    return conclude(replace(_with_doubt(snapshot), operation=Operation.NONE), now)


def _with_doubt(snapshot: Snapshot) -> Snapshot:
    """Count the container of an interrupted start as existing until somebody sees that it does not.

    Otherwise its slot would be given away, and the container would be found beside the next one.
    """
    unseen = snapshot.operation is Operation.STARTING and Resource.CONTAINER in snapshot.unreachable
    if not unseen or snapshot.conditions.container_exists:
        return snapshot
    earlier = snapshot.conditions.container_ready
    in_doubt = replace(
        earlier,
        status=Status.FALSE,
        reason=Reason.NOT_READY,
        message="A start was interrupted; its container may exist.",
    )
    return replace(snapshot, conditions=replace(snapshot.conditions, container_ready=in_doubt))


def commit_archive(snapshot: Snapshot) -> Snapshot:
    """Commit the key of what this operation uploaded; from now on the volume is a leftover."""
    if snapshot.archive_op_id is None:
        raise ValueError("no archive operation has begun")
    key = naming.archive_key(snapshot.workspace_id, snapshot.archive_op_id)
    if key == snapshot.archive_key:
        return snapshot
    # What was observed of the earlier archive says nothing about this one.
    conditions = replace(snapshot.conditions, archive_ready=NOT_OBSERVED)
    return replace(snapshot, archive_key=key, conditions=conditions)


def mark_restored(snapshot: Snapshot) -> Snapshot:
    """Record that the archive has been restored completely."""
    return replace(snapshot, restore_marker=snapshot.archive_key)


def settle(snapshot: Snapshot, now: datetime, jitter: float) -> Settlement:
    """End an attempt whose steps all returned; the observation made afterwards decides how."""
    if snapshot.operation is Operation.NONE:
        return Settlement(snapshot)  # the observation found a violation, which ended the operation
    if is_complete(snapshot.operation, snapshot):
        done = replace(
            snapshot, operation=Operation.NONE, error_reason=None, error_message=None, error_count=0
        )
        return Settlement(conclude(done, now))
    silent = " and ".join(set(snapshot.unreachable).intersection(NEEDS[snapshot.operation]))
    if silent:
        return fail(snapshot, ErrorReason.UNREACHABLE, f"The {silent} could not be observed.", now, jitter)
    message = f"{snapshot.operation} reported success, but its result was not observed."
    return fail(snapshot, ErrorReason.ACTION_FAILED, message, now, jitter)


def fail(snapshot: Snapshot, reason: ErrorReason, message: str, now: datetime, jitter: float) -> Settlement:
    """Count a failed attempt; a terminal reason or the last attempt ends in ERROR."""
    failed_attempts = snapshot.error_count + 1
    failed = replace(snapshot, error_reason=reason, error_message=message, error_count=failed_attempts)
    delay = retry_delay_seconds(reason, failed_attempts, jitter)
    if delay is not None:
        return Settlement(failed, delay)
    given_up = _give_up(_with_doubt(failed), reason)
    if snapshot.deleted and snapshot.purge:
        # A purge needs no recovery: it continues by itself, at growing intervals.
        pause = timedelta(seconds=purge_delay_seconds(failed_attempts, jitter))
        given_up = replace(given_up, retry_at=now + pause)
    return Settlement(conclude(given_up, now))


def _give_up(snapshot: Snapshot, reason: ErrorReason) -> Snapshot:
    final = reason if retry_delay_seconds(reason, 1, 0) is None else ErrorReason.RETRY_EXCEEDED
    return replace(snapshot, error_reason=final, operation=Operation.NONE)
