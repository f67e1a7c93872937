"""What is known about a workspace: observations, conditions, and the snapshot that decisions are based on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

WorkspaceId = NewType("WorkspaceId", str)


class Resource(StrEnum):
    """What providers can be asked about."""

    CONTAINER = "container"
    VOLUME = "volume"
    ARCHIVE = "archive"


class Status(StrEnum):
    """The status of a condition, as in Kubernetes. Unknown means never observed; absent is False."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition has its status; decisions depend on it."""

    NOT_OBSERVED = "NotObserved"
    READY = "Ready"
    NOT_READY = "NotReady"
    ABSENT = "Absent"
    COMPLETE = "Complete"
    INCOMPLETE = "Incomplete"
    VANISHED = "Vanished"
    REACHABLE = "Reachable"
    NODE_LOST = "NodeLost"
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
    """One observed property; `reason` is more precise than `status`."""

    status: Status
    reason: str
    message: str
    last_transition_time: datetime | None

    @property
    def is_true(self) -> bool:
        return self.status is Status.TRUE


NOT_OBSERVED = Condition(Status.UNKNOWN, Reason.NOT_OBSERVED, "Not observed yet.", None)


@dataclass(frozen=True)
class Conditions:
    """The conditions of docs/contract.md, and two more about a running instance."""

    volume_ready: Condition = NOT_OBSERVED
    volume_reachable: Condition = NOT_OBSERVED
    archive_ready: Condition = NOT_OBSERVED
    container_ready: Condition = NOT_OBSERVED
    container_answers: Condition = NOT_OBSERVED
    configuration_current: Condition = NOT_OBSERVED
    healthy: Condition = NOT_OBSERVED

    @property
    def container_exists(self) -> bool:
        """Whether there is a container; an exited one counts, because it still holds the volume."""
        return self.container_ready.reason in {Reason.READY, Reason.NOT_READY}

    @property
    def container_is_gone(self) -> bool:
        return self.container_ready.reason == Reason.ABSENT

    @property
    def nothing_is_left(self) -> bool:
        """Whether neither the container nor the volume exists."""
        return self.container_is_gone and self.volume_is_gone

    @property
    def restart_to_apply(self) -> str | None:
        """What a restart would change, in one sentence; None if nothing, or if no instance runs."""
        configuration = self.configuration_current
        return configuration.message if configuration.status is Status.FALSE else None

    @property
    def volume_exists(self) -> bool:
        """Whether there is a volume, complete or not."""
        return self.volume_ready.reason in {Reason.COMPLETE, Reason.INCOMPLETE}

    @property
    def home_is_out_of_reach(self) -> bool:
        """Whether the home is on a disk of a node that does not respond: it is neither lost nor usable."""
        return self.volume_reachable.reason == Reason.NODE_LOST

    @property
    def volume_is_gone(self) -> bool:
        return self.volume_ready.reason in {Reason.ABSENT, Reason.VANISHED}


class ContainerFact(StrEnum):
    """What the instance provider reports: UNHEALTHY runs but does not respond, NOT_READY does not run."""

    ABSENT = "absent"
    NOT_READY = "not_ready"
    UNHEALTHY = "unhealthy"
    READY = "ready"
    UNREACHABLE = "unreachable"


class VolumeFact(StrEnum):
    """What the volume provider reports; it does not know whether the home is complete."""

    ABSENT = "absent"
    PRESENT = "present"
    UNREACHABLE = "unreachable"


class ArchiveFact(StrEnum):
    """Whether the archive of `archive_key` and its meta exist; ABSENT means a 404, never an outage."""

    ABSENT = "absent"
    PRESENT = "present"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class LostNode:
    """The node whose disk holds the home does not respond; `since` is None if the provider cannot tell."""

    message: str
    since: datetime | None


@dataclass(frozen=True)
class Observation:
    """What the providers report at one time; UNREACHABLE leaves the earlier condition as it is."""

    container: ContainerFact
    volume: VolumeFact
    archive: ArchiveFact
    # What a restart would change about a running instance; None if the provider does not know.
    outdated: tuple[str, ...] | None = None
    # Why an UNREACHABLE volume is out of reach although its provider responds; None in any other case.
    lost_node: LostNode | None = None


# The restore marker of a volume whose content a person gave up for an empty home.
DISCARDED = "leftover"


@dataclass(frozen=True)
class Snapshot:
    """The row as last observed: everything that decisions are based on."""

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
    # Together with the operation, this identifies a claim.
    claimed_at: datetime | None = None
    # Providers that the next step needs and that do not respond.
    waiting_for: tuple[Resource, ...] = ()
    waiting_since: datetime | None = None
    # The earliest time of the next attempt of a purge that keeps failing.
    retry_at: datetime | None = None


# The keys in the JSONB column.
CONDITION_KEYS = {
    "storage.volume_ready": "volume_ready",
    "storage.volume_reachable": "volume_reachable",
    "storage.archive_ready": "archive_ready",
    "infra.container_ready": "container_ready",
    "infra.container_answers": "container_answers",
    "infra.configuration_current": "configuration_current",
    "policy.healthy": "healthy",
}


def conditions_to_json(conditions: Conditions) -> dict[str, dict[str, str | None]]:
    return {key: _condition_to_json(getattr(conditions, field)) for key, field in CONDITION_KEYS.items()}


def conditions_from_json(document: Mapping[str, Mapping[str, str | None]]) -> Conditions:
    """Parse the column; a missing condition was never observed."""
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
