"""What API, worker and workflows agree on: names, ids and payloads."""

from dataclasses import dataclass

from codehub.domain.conditions import WorkspaceId
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import ErrorReason, Operation

WORKSPACE_WORKFLOW = "WorkspaceWorkflow"
WAKE_SIGNAL = "wake"
TTL_SCHEDULE = "codehub-ttl"
GC_SCHEDULE = "codehub-archive-gc"
OBSERVE_SCHEDULE = "codehub-observe"


def workspace_workflow_id(workspace_id: WorkspaceId) -> str:
    """The lock: Temporal runs at most one workflow of this id."""
    return f"workspace-{workspace_id}"


@dataclass(frozen=True)
class ConvergeRequest:
    """Whose workspace to bring to its desired state."""

    workspace_id: WorkspaceId
    owner_id: str


@dataclass(frozen=True)
class ClaimRequest:
    """Which operation to begin; `archive_op_id` is used only where one is needed."""

    workspace_id: WorkspaceId
    operation: Operation
    archive_op_id: str


@dataclass(frozen=True)
class OperationRequest:
    """What an operation's own workflow and its activities work with, fixed when it was claimed."""

    workspace_id: WorkspaceId
    owner_id: str
    operation: Operation
    image_ref: str
    archive_key: str | None
    archive_op_id: str | None
    needs_upload: bool = False


@dataclass(frozen=True)
class AttemptFailed:
    """Why an attempt ended without its result."""

    workspace_id: WorkspaceId
    reason: ErrorReason
    message: str
    jitter: float


@dataclass(frozen=True)
class RecoverRequest:
    """A person's decision about an error."""

    workspace_id: WorkspaceId
    choice: RecoverChoice
    actor: str
