"""Names, ids and payloads that the API, the worker and the workflows share."""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

from codehub.domain.conditions import Snapshot, WorkspaceId
from codehub.domain.planner import Plan, plan
from codehub.domain.states import ErrorReason, Operation

WORKSPACE_WORKFLOW = "WorkspaceWorkflow"
WAKE_SIGNAL = "wake"
TTL_SCHEDULE = "codehub-ttl"
GC_SCHEDULE = "codehub-archive-gc"
OBSERVE_SCHEDULE = "codehub-observe"
DISK_SCHEDULE = "codehub-disk"
RETENTION_SCHEDULE = "codehub-retention"


class StepQueue(StrEnum):
    """Task queues for steps; workflows and sweeps have the main queue.

    Steps are separated by how long they take and whether a person waits for them, so that a step in one queue
    never waits for a step in another.
    """

    ARCHIVES = "archives"
    RESTORES = "restores"
    STARTS = "starts"
    INSTANCES = "instances"


def queue_name(main_queue: str, queue: StepQueue) -> str:
    return f"{main_queue}-{queue}"


def workspace_workflow_id(workspace_id: WorkspaceId) -> str:
    """Return the workflow id, which is also the lock: Temporal runs at most one workflow with it."""
    return f"workspace-{workspace_id}"


@dataclass(frozen=True)
class ConvergeRequest:
    """Which workspace to bring to its desired state, and its owner."""

    workspace_id: WorkspaceId
    owner_id: str


@dataclass(frozen=True)
class Observed(Snapshot):
    """The row after an observation, and what to do next.

    The plan is recorded in the history, so that a worker of another version that replays the run follows it
    and does not make its own. It is None in runs of older versions.
    """

    plan: Plan | None = None


def with_plan(snapshot: Snapshot) -> Observed:
    values = {field.name: getattr(snapshot, field.name) for field in fields(Snapshot)}
    return Observed(**values, plan=plan(snapshot))


@dataclass(frozen=True)
class ClaimRequest:
    """Which operation to begin; `new_archive_op_id` is used only if one is needed."""

    workspace_id: WorkspaceId
    operation: Operation
    new_archive_op_id: str


@dataclass(frozen=True)
class OperationRequest:
    """The claim that the workflow and activities of an operation work with.

    `operation` and `claimed_at` together identify it.
    """

    workspace_id: WorkspaceId
    owner_id: str
    operation: Operation
    claimed_at: datetime
    image_ref: str
    archive_key: str | None
    archive_op_id: str | None
    needs_upload: bool


def operation_workflow_id(request: OperationRequest) -> str:
    return workflow_id_of(request.workspace_id, request.operation)


def workflow_id_of(workspace_id: WorkspaceId, operation: Operation) -> str:
    """Return the workflow id of an operation; its attempts have the same id, one after the other."""
    return f"{workspace_workflow_id(workspace_id)}-{operation.lower()}"


@dataclass(frozen=True)
class SettleRequest:
    """An attempt whose steps all returned; `claimed_at` is None in runs of older versions."""

    workspace_id: WorkspaceId
    jitter: float
    claimed_at: datetime | None = None


@dataclass(frozen=True)
class AttemptFailed:
    """An attempt that failed, and why; `claimed_at` is None in runs of older versions."""

    workspace_id: WorkspaceId
    reason: ErrorReason
    message: str
    jitter: float
    claimed_at: datetime | None = None


@dataclass(frozen=True)
class AttemptEnded:
    """The row after an attempt, and the wait before the next attempt if there is one."""

    snapshot: Observed
    retry_after_seconds: float | None


@dataclass(frozen=True)
class SweepRequest:
    """When a sweep began, by Temporal's clock; activities take the earlier of it and their own clock."""

    now: datetime


@dataclass(frozen=True)
class TtlResult:
    """What one TTL sweep did."""

    used: int
    stopped: int
    archived: int


@dataclass(frozen=True)
class DiskResult:
    """How many workspaces one disk sweep measured."""

    measured: int


@dataclass(frozen=True)
class GcResult:
    """What one garbage collection did."""

    protected: int
    orphans: int
    collected: int
    aborted_uploads: int
    vanished: int


@dataclass(frozen=True)
class RetentionResult:
    """How many rows of each kind were removed."""

    workspaces: int
    archives: int
    events: int
    sessions: int
    tokens: int
    usage: int
    # Absent in runs that began before the audit log existed.
    audit_log: int = 0


@dataclass(frozen=True)
class ObserveResult:
    """What one observe sweep found."""

    drifted: int
    not_converged: int
