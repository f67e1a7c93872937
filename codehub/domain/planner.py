"""What to do next: one table, and the two cases that the table cannot express."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from codehub.domain.completion import is_complete
from codehub.domain.conditions import DISCARDED, Resource, Snapshot, Status
from codehub.domain.states import DesiredState, Operation, Phase

NEXT_OPERATION = {
    (Phase.PENDING, DesiredState.ARCHIVED): Operation.CREATE_EMPTY_ARCHIVE,
    (Phase.PENDING, DesiredState.STANDBY): Operation.PROVISIONING,
    (Phase.PENDING, DesiredState.RUNNING): Operation.PROVISIONING,
    (Phase.ARCHIVED, DesiredState.STANDBY): Operation.RESTORING,
    (Phase.ARCHIVED, DesiredState.RUNNING): Operation.RESTORING,
    (Phase.STANDBY, DesiredState.RUNNING): Operation.STARTING,
    (Phase.STANDBY, DesiredState.ARCHIVED): Operation.ARCHIVING,
    (Phase.RUNNING, DesiredState.STANDBY): Operation.STOPPING,
    (Phase.RUNNING, DesiredState.ARCHIVED): Operation.STOPPING,
}

# What an operation needs. It does not begin until all of it was just observed: then an earlier outage costs
# time, and not one of the attempts after which a person has to recover.
NEEDS = {
    Operation.PROVISIONING: (Resource.VOLUME,),
    Operation.RESTORING: (Resource.CONTAINER, Resource.VOLUME, Resource.ARCHIVE),
    Operation.STARTING: (Resource.CONTAINER, Resource.VOLUME),
    Operation.STOPPING: (Resource.CONTAINER,),
    Operation.ARCHIVING: (Resource.CONTAINER, Resource.VOLUME, Resource.ARCHIVE),
    Operation.CREATE_EMPTY_ARCHIVE: (Resource.VOLUME, Resource.ARCHIVE),
    Operation.DELETING: (Resource.CONTAINER, Resource.VOLUME),
}

# Operations that can be given up at any point, because they never destroy an only copy.
REVERSIBLE = frozenset(
    {
        Operation.PROVISIONING,
        Operation.RESTORING,
        Operation.STARTING,
        Operation.STOPPING,
        Operation.CREATE_EMPTY_ARCHIVE,
    }
)


class Decision(StrEnum):
    """RUN an operation, SETTLE one that ran already, be CONVERGED, WAIT, or HALT for a person.

    WAIT is for a provider that does not respond, or for the next attempt of a failing purge.
    """

    RUN = "RUN"
    SETTLE = "SETTLE"
    CONVERGED = "CONVERGED"
    WAIT = "WAIT"
    HALT = "HALT"


@dataclass(frozen=True)
class Plan:
    """The decision and, for RUN, SETTLE and WAIT, the operation."""

    decision: Decision
    operation: Operation = Operation.NONE


def plan(snapshot: Snapshot) -> Plan:
    """Choose the next step from the current state alone."""
    if snapshot.operation is not Operation.NONE:
        return Plan(_resume(snapshot), snapshot.operation)
    if _is_halted(snapshot):
        return Plan(Decision.HALT)
    operation = _next_operation(snapshot)
    if operation is Operation.NONE:
        return Plan(Decision.CONVERGED)
    ready = snapshot.retry_at is None and not _unseen(snapshot, operation)
    return Plan(Decision.RUN if ready else Decision.WAIT, operation)


def must_release(snapshot: Snapshot) -> bool:
    """Return whether the operation has to give its claim back, because a provider does not respond.

    A claim locks people out, so only an operation that cannot be undone keeps it during an outage.
    """
    if plan(snapshot).decision is not Decision.WAIT:
        return False
    return snapshot.operation in REVERSIBLE or needs_upload(snapshot)


def needs_upload(snapshot: Snapshot) -> bool:
    """Return whether ARCHIVING has a complete home to upload; once the key is committed, it has not."""
    return snapshot.operation is Operation.ARCHIVING and snapshot.conditions.volume_ready.is_true


def note_waiting(snapshot: Snapshot, now: datetime, *, recovering: bool = False) -> Snapshot:
    """Record which providers the next step or a recover request waits for, and since when."""
    planned = plan(snapshot)
    if planned.decision is Decision.WAIT:
        silent = _unseen(snapshot, planned.operation)
    else:
        silent = snapshot.unreachable if recovering else ()
    since = (snapshot.waiting_since or now) if silent else None
    return replace(snapshot, waiting_for=silent, waiting_since=since)


def _resume(snapshot: Snapshot) -> Decision:
    """Continue what a dead run left, but never repeat what is complete: a restore begins by destroying."""
    if _unseen(snapshot, snapshot.operation):
        return Decision.WAIT
    return Decision.SETTLE if is_complete(snapshot.operation, snapshot) else Decision.RUN


def _is_halted(snapshot: Snapshot) -> bool:
    """Return whether an error waits for a person, also in a deletion: continuing would lose the files."""
    if snapshot.deleted:
        return not snapshot.purge and snapshot.conditions.healthy.status is Status.FALSE
    return snapshot.phase is Phase.ERROR


def _next_operation(snapshot: Snapshot) -> Operation:
    if snapshot.phase is Phase.DELETED:
        return Operation.NONE
    if snapshot.phase is Phase.DELETING:
        return _next_deletion_step(snapshot)
    return _leftover_operation(snapshot) or NEXT_OPERATION.get(
        (snapshot.phase, snapshot.desired_state), Operation.NONE
    )


def _next_deletion_step(snapshot: Snapshot) -> Operation:
    """Step down like any other change, so that a last archive exists; a purge deletes directly."""
    if snapshot.purge:
        return Operation.DELETING
    if snapshot.conditions.container_exists:
        return Operation.STOPPING
    return Operation.ARCHIVING if snapshot.conditions.volume_ready.is_true else Operation.DELETING


def _leftover_operation(snapshot: Snapshot) -> Operation | None:
    """Return the operation that removes leftovers: an exited container, or a volume that is archived.

    A discarded volume is not reused: an empty archive is restored over it.
    """
    conditions = snapshot.conditions
    if snapshot.phase is Phase.PENDING and snapshot.restore_marker == DISCARDED:
        return Operation.CREATE_EMPTY_ARCHIVE
    if snapshot.phase is Phase.STANDBY and snapshot.desired_state is not DesiredState.RUNNING:
        return Operation.STOPPING if conditions.container_exists else None
    if snapshot.phase is Phase.ARCHIVED and snapshot.desired_state is DesiredState.ARCHIVED:
        return Operation.ARCHIVING if conditions.volume_exists else None
    return None


def _needs(snapshot: Snapshot, operation: Operation) -> tuple[Resource, ...]:
    """Return what the operation needs; a deletion that is not a purge also needs to see the archive."""
    if operation is Operation.DELETING and not snapshot.purge:
        return (*NEEDS[operation], Resource.ARCHIVE)
    return NEEDS[operation]


def _unseen(snapshot: Snapshot, operation: Operation) -> tuple[Resource, ...]:
    """Return what the operation needs and the last observation did not see."""
    conditions = snapshot.conditions
    status = {
        Resource.CONTAINER: conditions.container_ready.status,
        Resource.VOLUME: conditions.volume_ready.status,
        Resource.ARCHIVE: conditions.archive_ready.status,
    }
    return tuple(
        resource
        for resource in _needs(snapshot, operation)
        if resource in snapshot.unreachable or status[resource] is Status.UNKNOWN
    )
