"""When an operation is complete: an observation decides, never the return value of a call."""

from collections.abc import Callable

from codehub.domain.conditions import Snapshot
from codehub.domain.states import Operation


def is_complete(operation: Operation, snapshot: Snapshot) -> bool:
    """Return whether this snapshot, judged after the operation ran, shows its result."""
    return COMPLETION_RULES[operation](snapshot)


def _has_volume(snapshot: Snapshot) -> bool:
    return snapshot.conditions.volume_ready.is_true


def _is_restored(snapshot: Snapshot) -> bool:
    return _has_volume(snapshot) and snapshot.restore_marker == snapshot.archive_key


def _accepts_traffic(snapshot: Snapshot) -> bool:
    return snapshot.conditions.container_ready.is_true


def _is_stopped(snapshot: Snapshot) -> bool:
    return snapshot.conditions.container_is_gone and _has_volume(snapshot)


def _has_archive(snapshot: Snapshot) -> bool:
    return snapshot.archive_key is not None and snapshot.conditions.archive_ready.is_true


def _is_archived(snapshot: Snapshot) -> bool:
    return snapshot.conditions.volume_is_gone and _has_archive(snapshot)


def _nothing_is_left(snapshot: Snapshot) -> bool:
    return snapshot.conditions.nothing_is_left


COMPLETION_RULES: dict[Operation, Callable[[Snapshot], bool]] = {
    Operation.PROVISIONING: _has_volume,
    Operation.RESTORING: _is_restored,
    Operation.STARTING: _accepts_traffic,
    Operation.STOPPING: _is_stopped,
    Operation.ARCHIVING: _is_archived,
    Operation.CREATE_EMPTY_ARCHIVE: _has_archive,
    Operation.DELETING: _nothing_is_left,
}
