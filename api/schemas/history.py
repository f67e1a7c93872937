"""What has happened to a workspace."""

from typing import Any
from uuid import UUID

from pydantic import Field

from api.schemas.base import Document, Timestamp
from codehub.domain.history import OperationResult
from codehub.domain.states import ErrorReason, Operation


class OperationItem(Document):
    """One operation, from its claim to its end."""

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
    removed_at: Timestamp | None


class ArchiveList(Document):
    """Archives, newest first."""

    items: list[ArchiveItem]
