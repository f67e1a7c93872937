"""What is known of a workspace: facts from the providers, conditions, and the snapshot decisions look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

WorkspaceId = NewType("WorkspaceId", str)


class Resource(StrEnum):
    """What a provider was asked about."""

    CONTAINER = "container"
    VOLUME = "volume"
    ARCHIVE = "archive"


class Status(StrEnum):
    """Kubernetes style: Unknown means never observed, not absent."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition has its status, for machines; decisions read it."""

    NOT_OBSERVED = "NotObserved"
    READY = "Ready"
    NOT_READY = "NotReady"
    ABSENT = "Absent"
    COMPLETE = "Complete"
    INCOMPLETE = "Incomplete"
    VANISHED = "Vanished"
    READABLE = "Readable"
    GONE = "Gone"
    NO_ARCHIVE = "NoArchive"
    HEALTHY = "Healthy"
    ANSWERS = "Answers"
    NOT_ANSWERING = "NotAnswering"
    CURRENT = "Current"
    OUTDATED = "Outdated"
    NOT_RUNNING = "NotRunning"


@dataclass(frozen=True)
class Condition:
    """One observed property; `reason` says more than `status` can."""

    status: Status
    reason: str
    message: str
    last_transition_time: datetime | None

    @property
    def is_true(self) -> bool:
        return self.status is Status.TRUE


NOT_OBSERVED = Condition(Status.UNKNOWN, Reason.NOT_OBSERVED, "Not looked at yet.", None)


@dataclass(frozen=True)
class Conditions:
    """The conditions of SPEC section 2, and two that say more about an instance that runs."""

    volume_ready: Condition = NOT_OBSERVED
    archive_ready: Condition = NOT_OBSERVED
    container_ready: Condition = NOT_OBSERVED
    container_answers: Condition = NOT_OBSERVED
    configuration_current: Condition = NOT_OBSERVED
    healthy: Condition = NOT_OBSERVED

    @property
    def container_exists(self) -> bool:
        """An exited container exists too: it still holds the volume."""
        return self.container_ready.reason in {Reason.READY, Reason.NOT_READY}

    @property
    def container_is_gone(self) -> bool:
        return self.container_ready.reason == Reason.ABSENT

    @property
    def restart_to_apply(self) -> str | None:
        """What a restart would change, in one sentence; None if nothing, or if nothing runs."""
        configuration = self.configuration_current
        return configuration.message if configuration.status is Status.FALSE else None

    @property
    def volume_exists(self) -> bool:
        """A half-restored volume exists but does not count as ready."""
        return self.volume_ready.reason in {Reason.COMPLETE, Reason.INCOMPLETE}

    @property
    def volume_is_gone(self) -> bool:
        return self.volume_ready.reason in {Reason.ABSENT, Reason.VANISHED}


class ContainerFact(StrEnum):
    """What the instance provider answered: UNHEALTHY runs without answering, NOT_READY does not run."""

    ABSENT = "absent"
    NOT_READY = "not_ready"
    UNHEALTHY = "unhealthy"
    READY = "ready"
    UNREACHABLE = "unreachable"


class VolumeFact(StrEnum):
    """What the volume provider answered; whether it is complete is ours to judge."""

    ABSENT = "absent"
    PRESENT = "present"
    UNREACHABLE = "unreachable"


class ArchiveFact(StrEnum):
    """Whether the archive of `archive_key` and its meta answer HEAD; ABSENT means 404, never an outage."""

    ABSENT = "absent"
    PRESENT = "present"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Observation:
    """One look at reality. UNREACHABLE yields no new observation: the earlier conditions stay."""

    container: ContainerFact
    volume: VolumeFact
    archive: ArchiveFact
    # What a restart would change about an instance that runs; None if the provider could not tell.
    outdated: tuple[str, ...] | None = None


# A restore marker that is no archive's key: a person gave up what the volume holds and wants an empty home.
DISCARDED = "leftover"


@dataclass(frozen=True)
class Snapshot:
    """All that decisions look at: the row as last observed."""

    workspace_id: WorkspaceId
    desired_state: DesiredState
    phase: Phase = Phase.PENDING
    operation: Operation = Operation.NONE
    conditions: Conditions = Conditions()
    archive_key: str | None = None
    archive_op_id: str | None = None
    restore_marker: str | None = None
    error_reason: ErrorReason | None = None
    error_message: str | None = None
    error_count: int = 0
    deleted: bool = False
    purge: bool = False
    unreachable: tuple[Resource, ...] = ()
    # With the operation, this names one claim and no other.
    claimed_at: datetime | None = None
    # Providers that the next step needs and that do not answer.
    waiting_for: tuple[Resource, ...] = ()
    waiting_since: datetime | None = None
    # The earliest time of the next attempt of a purge that keeps failing.
    retry_at: datetime | None = None


# The JSONB column's keys.
CONDITION_KEYS = {
    "storage.volume_ready": "volume_ready",
    "storage.archive_ready": "archive_ready",
    "infra.container_ready": "container_ready",
    "infra.container_answers": "container_answers",
    "infra.configuration_current": "configuration_current",
    "policy.healthy": "healthy",
}


def conditions_to_json(conditions: Conditions) -> dict[str, dict[str, str | None]]:
    return {key: _condition_to_json(getattr(conditions, field)) for key, field in CONDITION_KEYS.items()}


def conditions_from_json(document: Mapping[str, Mapping[str, str | None]]) -> Conditions:
    """Read the column; a missing condition was never observed."""
    found = {
        field: _condition_from_json(document[key]) for key, field in CONDITION_KEYS.items() if key in document
    }
    return Conditions(**found)


def _condition_to_json(condition: Condition) -> dict[str, str | None]:
    since = condition.last_transition_time
    return {
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "last_transition_time": since.isoformat() if since else None,
    }


def _condition_from_json(document: Mapping[str, str | None]) -> Condition:
    since = document.get("last_transition_time")
    return Condition(
        status=Status(document["status"] or Status.UNKNOWN),
        reason=document.get("reason") or Reason.NOT_OBSERVED,
        message=document.get("message") or "",
        last_transition_time=datetime.fromisoformat(since) if since else None,
    )
