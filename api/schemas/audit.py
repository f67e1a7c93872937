"""The audit log."""

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from api.schemas.base import Document, Timestamp


class AuditItem(Document):
    """One entry of the audit log."""

    id: int
    at: Timestamp
    action: str = Field(description="What was done or attempted, such as `sign_in` or `token_create`.")
    outcome: Literal["success", "failure"]
    actor: str = Field(description="A user name, `unknown` before a sign-in, or a program on the server.")
    actor_id: UUID | None
    address: str | None = Field(description="The address of the client.")
    target: str | None = Field(description="The name of the user, token or workspace concerned.")
    target_id: str | None
    detail: dict[str, Any]


class AuditPage(Document):
    """Entries of the audit log, newest first."""

    items: list[AuditItem]
    next_cursor: str | None
