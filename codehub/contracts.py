"""What API, worker and workflows agree on: names, ids and payloads."""

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
RETENTION_SCHEDULE = "codehub-retention"


class StepQueue(StrEnum):
    """Task queues beside the main one, which has the workflows and the sweeps.

    Steps are kept apart by how long they take and whether somebody waits for them: what waits in one queue
    never waits for what runs in another.
    """

    ARCHIVES = "archives"
    RESTORES = "restores"
    STARTS = "starts"
    INSTANCES = "instances"


def queue_name(main_queue: str, queue: StepQueue) -> str:
    return f"{main_queue}-{queue}"


def workspace_workflow_id(workspace_id: WorkspaceId) -> str:
    """The lock: Temporal runs at most one workflow of this id."""
    return f"workspace-{workspace_id}"


@dataclass(frozen=True)
class ConvergeRequest:
    """Whose workspace to bring to its desired state."""

    workspace_id: WorkspaceId
    owner_id: str


@dataclass(frozen=True)
class Observed(Snapshot):
    """The row after a look, and what to do next.

    The plan is made where the look is stored, so the history records it: a worker of another version that
    replays the run follows the recorded plan and not its own. None in runs from before plans were recorded.
    """

    plan: Plan | None = None


def with_plan(snapshot: Snapshot) -> Observed:
    values = {field.name: getattr(snapshot, field.name) for field in fields(Snapshot)}
    return Observed(**values, plan=plan(snapshot))


@dataclass(frozen=True)
class ClaimRequest:
    """Which operation to begin; `new_archive_op_id` is used only where one is needed."""

    workspace_id: WorkspaceId
    operation: Operation
    new_archive_op_id: str


@dataclass(frozen=True)
class OperationRequest:
    """What an operation's workflow and activities work with, as it was claimed.

    Operation and `claimed_at` together name this claim and no other.
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
    """Attempts of one operation follow each other under the same id."""
    return f"{workspace_workflow_id(workspace_id)}-{operation.lower()}"


@dataclass(frozen=True)
class SettleRequest:
    """An attempt whose steps all returned; `claimed_at` is None in runs from before it was sent."""

    workspace_id: WorkspaceId
    jitter: float
    claimed_at: datetime | None = None


@dataclass(frozen=True)
class AttemptFailed:
    """An attempt that ended without its result, and why; `claimed_at` as in `SettleRequest`."""

    workspace_id: WorkspaceId
    reason: ErrorReason
    message: str
    jitter: float
    claimed_at: datetime | None = None


@dataclass(frozen=True)
class AttemptEnded:
    """What to decide from next, and the wait before the next attempt if there is one."""

    snapshot: Observed
    retry_after_seconds: float | None


@dataclass(frozen=True)
class SweepRequest:
    """When a sweep began, by Temporal's clock; activities bound it by their own."""

    now: datetime


@dataclass(frozen=True)
class TtlResult:
    """What one TTL sweep did."""

    used: int
    stopped: int
    archived: int


@dataclass(frozen=True)
class GcResult:
    """What one collection did."""

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


@dataclass(frozen=True)
class ObserveResult:
    """What one sweep found."""

    drifted: int
    not_converged: int
