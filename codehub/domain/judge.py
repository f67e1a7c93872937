"""From observations to conditions, and from conditions to a phase: what is true, not what to do."""

from dataclasses import replace
from datetime import datetime, timedelta

from codehub.domain.conditions import (
    DISCARDED,
    NOT_OBSERVED,
    ArchiveFact,
    Condition,
    Conditions,
    ContainerFact,
    Observation,
    Reason,
    Resource,
    Snapshot,
    Status,
    VolumeFact,
)
from codehub.domain.failures import EXPLANATIONS, is_terminal
from codehub.domain.states import ErrorReason, Operation, Phase

_CONTAINER = {
    ContainerFact.ABSENT: (Status.FALSE, Reason.ABSENT, "There is no container."),
    ContainerFact.NOT_READY: (Status.FALSE, Reason.NOT_READY, "The container does not accept traffic."),
    ContainerFact.READY: (Status.TRUE, Reason.READY, "The container accepts traffic."),
}
_ANSWERS = {
    ContainerFact.UNHEALTHY: (Status.FALSE, Reason.NOT_ANSWERING, "The IDE runs but does not respond."),
    ContainerFact.READY: (Status.TRUE, Reason.ANSWERS, "The IDE passes its health check."),
}
_NOT_RUNNING = (Status.UNKNOWN, Reason.NOT_RUNNING, "No container is running.")
# A running IDE that does not respond for less than this is busy, not down; programs may be running in it.
HANG_GRACE = timedelta(seconds=60)


def judge(snapshot: Snapshot, observation: Observation, now: datetime) -> Snapshot:
    """Apply an observation; a provider that did not respond changes nothing."""
    conditions = replace(
        judge_instance(snapshot.conditions, observation.container, observation.outdated, now),
        volume_ready=_judge_volume(snapshot, observation.volume, now),
        volume_reachable=_judge_reach(snapshot.conditions.volume_reachable, observation, now),
        archive_ready=_judge_archive(snapshot, observation.archive, now),
    )
    must_wait = snapshot.retry_at is not None and now < snapshot.retry_at
    judged = replace(
        snapshot,
        conditions=conditions,
        restore_marker=_judge_marker(snapshot, observation.volume, conditions.volume_ready),
        unreachable=_unreachable(observation),
        retry_at=snapshot.retry_at if must_wait else None,
    )
    return conclude(judged, now)


def conclude(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Derive health and phase from the conditions; an error also ends the operation."""
    error = _violation(snapshot) or _recorded_error(snapshot)
    if error is None:
        healthy = _condition(
            snapshot.conditions.healthy, now, Status.TRUE, Reason.HEALTHY, "Nothing is wrong."
        )
        return _with_phase(_with_health(snapshot, healthy))
    reason, message = error
    healthy = _condition(snapshot.conditions.healthy, now, Status.FALSE, reason, message)
    failed = replace(_with_health(snapshot, healthy), error_reason=reason, error_message=message)
    # A purge continues despite errors: it is the way to get rid of a broken workspace.
    return _with_phase(failed if _is_purged(snapshot) else replace(failed, operation=Operation.NONE))


def phase_of(snapshot: Snapshot) -> Phase:
    """Return the first match in the table of phases in docs/contract.md.

    ARCHIVED goes by the key, because an archive that cannot be observed right now is not missing.
    """
    conditions = snapshot.conditions
    if snapshot.deleted:
        return Phase.DELETED if _deletion_is_finished(snapshot) else Phase.DELETING
    if not conditions.healthy.is_true:
        return Phase.ERROR
    if conditions.volume_ready.is_true:
        return Phase.RUNNING if conditions.container_ready.is_true else Phase.STANDBY
    return Phase.ARCHIVED if snapshot.archive_key else Phase.PENDING


def judge_instance(
    earlier: Conditions, fact: ContainerFact, outdated: tuple[str, ...] | None, now: datetime
) -> Conditions:
    """Apply an observation of the instance: the conditions whose keys begin with `infra`."""
    if fact is ContainerFact.UNREACHABLE:
        return earlier
    answers = _condition(earlier.container_answers, now, *_ANSWERS.get(fact, _NOT_RUNNING))
    if fact is ContainerFact.UNHEALTHY:
        fact = _ready_or_not(earlier.container_ready, answers, now)
    return replace(
        earlier,
        container_ready=_condition(earlier.container_ready, now, *_CONTAINER[fact]),
        container_answers=answers,
        configuration_current=_judge_configuration(earlier, answers, outdated, now),
    )


def _ready_or_not(ready: Condition, answers: Condition, now: datetime) -> ContainerFact:
    """Return READY for an instance that was ready and has been silent for less than the grace period."""
    silent_since = answers.last_transition_time or now
    is_blip = ready.is_true and now - silent_since < HANG_GRACE
    return ContainerFact.READY if is_blip else ContainerFact.NOT_READY


def _judge_configuration(
    earlier: Conditions, answers: Condition, outdated: tuple[str, ...] | None, now: datetime
) -> Condition:
    before = earlier.configuration_current
    if answers.status is Status.UNKNOWN:
        return _condition(before, now, *_NOT_RUNNING)
    if outdated is None:
        return before
    if outdated:
        return _condition(
            before, now, Status.FALSE, Reason.OUTDATED, f"Restart to apply: {', '.join(outdated)}."
        )
    return _condition(before, now, Status.TRUE, Reason.CURRENT, "A restart would change nothing.")


def _judge_volume(snapshot: Snapshot, fact: VolumeFact, now: datetime) -> Condition:
    earlier = snapshot.conditions.volume_ready
    existed = snapshot.conditions.volume_exists
    complete = _holds_complete_home(snapshot)
    if fact is VolumeFact.PRESENT or (fact is VolumeFact.UNREACHABLE and existed):
        if complete:
            return _condition(earlier, now, Status.TRUE, Reason.COMPLETE, "The volume holds a complete home.")
        message = "The volume is a leftover; the archive holds the home."
        return _condition(earlier, now, Status.FALSE, Reason.INCOMPLETE, message)
    if fact is VolumeFact.UNREACHABLE:
        return earlier
    # Only a purge removes a complete home, so its absence is a loss until a person decides.
    lost = earlier.reason == Reason.VANISHED or (existed and complete)
    if lost and not _is_purged(snapshot):
        return _condition(
            earlier, now, Status.FALSE, Reason.VANISHED, "The volume with the newest files is gone."
        )
    return _condition(earlier, now, Status.FALSE, Reason.ABSENT, "There is no volume.")


def _judge_reach(earlier: Condition, observation: Observation, now: datetime) -> Condition:
    """Tell a home on a lost node from an outage of its provider, which changes nothing."""
    lost = observation.lost_node
    if lost is not None:
        condition = _condition(earlier, now, Status.FALSE, Reason.NODE_LOST, lost.message)
        return replace(condition, last_transition_time=lost.since or condition.last_transition_time)
    if observation.volume is VolumeFact.UNREACHABLE:
        return earlier
    return _condition(earlier, now, Status.TRUE, Reason.REACHABLE, "No lost node holds the volume.")


def _judge_marker(snapshot: Snapshot, fact: VolumeFact, volume_ready: Condition) -> str | None:
    """Forget the restore into a volume that is gone: the next volume needs a restore of its own."""
    is_gone = fact is VolumeFact.ABSENT and volume_ready.reason == Reason.ABSENT
    return None if is_gone else snapshot.restore_marker


def _judge_archive(snapshot: Snapshot, fact: ArchiveFact, now: datetime) -> Condition:
    earlier = snapshot.conditions.archive_ready
    if snapshot.archive_key is None:
        return _condition(earlier, now, Status.FALSE, Reason.NO_ARCHIVE, "Nothing has been archived yet.")
    if fact is ArchiveFact.PRESENT:
        return _condition(earlier, now, Status.TRUE, Reason.READABLE, "The archive and its checksum exist.")
    if fact is ArchiveFact.ABSENT:
        return _condition(earlier, now, Status.FALSE, Reason.GONE, "The archive is gone.")
    return NOT_OBSERVED if earlier.reason == Reason.NO_ARCHIVE else earlier


def _holds_complete_home(snapshot: Snapshot) -> bool:
    """Return whether an existing volume is complete: no restore into it is missing or unfinished."""
    if snapshot.archive_key is None:
        return snapshot.restore_marker != DISCARDED
    return snapshot.restore_marker == snapshot.archive_key


def _violation(snapshot: Snapshot) -> tuple[ErrorReason, str] | None:
    conditions = snapshot.conditions
    if _is_purged(snapshot):
        return None
    if conditions.volume_ready.reason == Reason.VANISHED or _only_copy_is_gone(conditions):
        return ErrorReason.DATA_LOST, EXPLANATIONS[ErrorReason.DATA_LOST]
    if conditions.container_exists and conditions.volume_ready.status is Status.FALSE:
        reason = ErrorReason.CONTAINER_WITHOUT_VOLUME
        return reason, EXPLANATIONS[reason]
    return None


def _only_copy_is_gone(conditions: Conditions) -> bool:
    return conditions.archive_ready.reason == Reason.GONE and conditions.volume_ready.status is Status.FALSE


def _deletion_is_finished(snapshot: Snapshot) -> bool:
    """Return whether nothing is left; while a provider is silent, what was missing may be back."""
    silent = {Resource.CONTAINER, Resource.VOLUME} & set(snapshot.unreachable)
    if silent and snapshot.phase is not Phase.DELETED:
        return False
    return snapshot.conditions.nothing_is_left


def _recorded_error(snapshot: Snapshot) -> tuple[ErrorReason, str] | None:
    reason = snapshot.error_reason
    if reason is None or not is_terminal(reason):
        return None
    return reason, snapshot.error_message or EXPLANATIONS[reason]


def _is_purged(snapshot: Snapshot) -> bool:
    return snapshot.deleted and snapshot.purge


def _unreachable(observation: Observation) -> tuple[Resource, ...]:
    silent = {
        Resource.CONTAINER: observation.container is ContainerFact.UNREACHABLE,
        Resource.VOLUME: observation.volume is VolumeFact.UNREACHABLE,
        Resource.ARCHIVE: observation.archive is ArchiveFact.UNREACHABLE,
    }
    return tuple(resource for resource, is_silent in silent.items() if is_silent)


def _condition(earlier: Condition, now: datetime, status: Status, reason: str, message: str) -> Condition:
    """Return the new condition; as in Kubernetes, the transition time changes only with the status."""
    since = earlier.last_transition_time if earlier.status is status else now
    return Condition(status, reason, message, since)


def _with_health(snapshot: Snapshot, healthy: Condition) -> Snapshot:
    return replace(snapshot, conditions=replace(snapshot.conditions, healthy=healthy))


def _with_phase(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, phase=phase_of(snapshot))
