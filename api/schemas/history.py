"""History of a workspace: operations, steps, progress, activity, audit trail, archives."""

from typing import Any
from uuid import UUID

from pydantic import Field

from api.schemas.base import Document, Timestamp
from codehub.domain.history import OperationResult
from codehub.domain.states import ErrorReason, Operation
from codehub.ports import StepResult


class OperationItem(Document):
    """One operation, from its claim to its end."""

    id: int = Field(description="The id for reading its steps; also the id of its claim in the audit trail.")
    operation: Operation
    result: OperationResult
    started_at: Timestamp
    ended_at: Timestamp | None
    duration_seconds: float | None = Field(description="Until now if it is still running.")
    attempts: int
    error_reason: ErrorReason | None
    message: str | None
    temporal_url: str | None = Field(description="This operation in the Temporal Web UI.")


class OperationPage(Document):
    """Operations, newest first."""

    items: list[OperationItem]
    next_cursor: str | None


class StepItem(Document):
    """One step of an attempt of an operation."""

    name: str
    operation_attempt: int = Field(description="The attempt of the operation that it belongs to, from 1.")
    result: StepResult
    scheduled_at: Timestamp = Field(description="When it could have started.")
    started_at: Timestamp | None = Field(description="When its last attempt started.")
    ended_at: Timestamp | None
    attempts: int = Field(description="More than 1 if a worker was lost or a dependency was down.")
    error: str | None = Field(description="Why it failed or was retried.")


class StepList(Document):
    """The steps of an operation, in order."""

    items: list[StepItem]
    hint: str | None = Field(description="Why the list is empty; `null` if it is not.")


class EventItem(Document):
    """One entry of the audit trail."""

    id: int
    at: Timestamp
    kind: str
    actor: str
    operation: str | None
    phase: str | None
    error_reason: str | None
    detail: dict[str, Any]


class EventPage(Document):
    """Entries of the audit trail, newest first."""

    items: list[EventItem]
    next_cursor: str | None


class ArchiveItem(Document):
    """One archive of the home."""

    archive_op_id: UUID
    size_bytes: int | None
    sha256: str | None
    created_at: Timestamp
    verified_at: Timestamp | None
    current: bool = Field(description="Whether a restore uses it.")
    orphan_since: Timestamp | None = Field(description="Since when it is no longer needed.")
    given_up_at: Timestamp | None = Field(
        description="When a recovery chose something else; it is kept until the workspace is deleted."
    )
    removed_at: Timestamp | None


class ArchiveList(Document):
    """Archives, newest first."""

    items: list[ArchiveItem]


class ProgressView(Document):
    """The progress of the running step; clients compute the rate from two of them."""

    id: str = Field(description="The id of the workspace.")
    operation: Operation
    step: str | None = Field(
        description="`waiting for its turn` if none has run for some seconds; `null` between steps."
    )
    done: int
    total: int | None = Field(description="`null` if unknown.")
    unit: str | None
    at: Timestamp = Field(description="When this was read.")


class CurrentProgress(Document):
    """The progress of the running operation."""

    progress: ProgressView | None = Field(
        description="`null` if no operation runs, or its progress is unknown."
    )


class Activity(Document):
    """When a workspace was used."""

    bucket_seconds: int = Field(description="The length of a time bucket.")
    since: Timestamp = Field(
        description="The start of the first bucket; the last one contains the present time."
    )
    used: list[Timestamp] = Field(
        description="The starts of the buckets in which somebody used it, in order."
    )
