"""What has happened to a workspace."""

from typing import Any
from uuid import UUID

from pydantic import Field

from api.schemas.base import Document, Timestamp
from codehub.domain.history import OperationResult
from codehub.domain.states import ErrorReason, Operation
from codehub.ports import StepResult


class OperationItem(Document):
    """One operation, from its claim to its end."""

    id: int = Field(description="Asks for its steps; the audit trail has it as the id of the claim.")
    operation: Operation
    result: OperationResult
    started_at: Timestamp
    ended_at: Timestamp | None
    duration_seconds: float | None = Field(description="So far, if it is still running.")
    attempts: int
    error_reason: ErrorReason | None
    message: str | None
    temporal_url: str | None = Field(description="The same in the Temporal Web UI.")


class OperationPage(Document):
    """Operations, newest first."""

    items: list[OperationItem]
    next_cursor: str | None


class StepItem(Document):
    """One step of an attempt of an operation."""

    name: str
    operation_attempt: int = Field(description="Which attempt of the operation it belongs to, from 1 on.")
    result: StepResult
    scheduled_at: Timestamp = Field(description="Since when it could have started.")
    started_at: Timestamp | None = Field(description="The last time, if its worker was lost.")
    ended_at: Timestamp | None
    attempts: int = Field(description="More than 1 if its worker was lost, or a dependency was down.")
    error: str | None = Field(description="Why it failed, or had to be tried again.")


class StepList(Document):
    """The steps of an operation, in order."""

    items: list[StepItem]
    hint: str | None = Field(description="Why there are none.")


class EventItem(Document):
    """One line of the audit trail."""

    id: int
    at: Timestamp
    kind: str
    actor: str
    operation: str | None
    phase: str | None
    error_reason: str | None
    detail: dict[str, Any]


class EventPage(Document):
    """Lines of the audit trail, newest first."""

    items: list[EventItem]
    next_cursor: str | None


class ArchiveItem(Document):
    """One archive of the home."""

    archive_op_id: UUID
    size_bytes: int | None
    sha256: str | None
    created_at: Timestamp
    verified_at: Timestamp | None
    current: bool = Field(description="The one that a restore takes.")
    orphan_since: Timestamp | None = Field(description="Since when nothing needs it.")
    given_up_at: Timestamp | None = Field(
        description="When somebody recovered with something else; it is kept until the workspace is deleted."
    )
    removed_at: Timestamp | None


class ArchiveList(Document):
    """Archives, newest first."""

    items: list[ArchiveItem]


class ProgressView(Document):
    """The step under way; the rate is the difference of two, by their times."""

    id: str = Field(description="Of the workspace.")
    operation: Operation
    step: str | None = Field(
        description="`waiting for its turn` if none has run for some seconds; `null` between two steps."
    )
    done: int
    total: int | None = Field(description="`null` while nobody knows.")
    unit: str | None
    at: Timestamp = Field(description="When this was looked up.")


class CurrentProgress(Document):
    """How far the operation of a workspace is."""

    progress: ProgressView | None = Field(description="`null` if nothing is under way, or nobody can tell.")


class Activity(Document):
    """When a workspace was used, for a sparkline."""

    bucket_seconds: int = Field(description="How long each of the times below stands for.")
    since: Timestamp = Field(description="The first of the times that were looked at; the last one is now.")
    used: list[Timestamp] = Field(description="The beginnings of those in which somebody used it, in order.")
