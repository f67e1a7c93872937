"""Errors: all have the same shape, with a code for programs and a message for people."""

from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Timestamp


class Code(StrEnum):
    """The kind of error."""

    INVALID_REQUEST = "INVALID_REQUEST"
    UNAUTHORIZED = "UNAUTHORIZED"
    SECOND_FACTOR_REQUIRED = "SECOND_FACTOR_REQUIRED"
    FORBIDDEN = "FORBIDDEN"
    WRONG_PASSWORD = "WRONG_PASSWORD"  # noqa: S105 (a code)
    REAUTHENTICATION_REQUIRED = "REAUTHENTICATION_REQUIRED"
    CSRF_TOKEN_MISSING = "CSRF_TOKEN_MISSING"  # noqa: S105 (a code, not a token)
    NOT_FOUND = "NOT_FOUND"
    WORKSPACE_NOT_FOUND = "WORKSPACE_NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    INVALID_STATE = "INVALID_STATE"
    OPERATION_IN_PROGRESS = "OPERATION_IN_PROGRESS"
    CONFLICT = "CONFLICT"
    PRECONDITION_FAILED = "PRECONDITION_FAILED"
    BODY_TOO_LARGE = "BODY_TOO_LARGE"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    DISK_LIMIT_EXCEEDED = "DISK_LIMIT_EXCEEDED"
    TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    UPSTREAM_UNAVAILABLE = "UPSTREAM_UNAVAILABLE"
    DEPENDENCY_UNAVAILABLE = "DEPENDENCY_UNAVAILABLE"


class FieldProblem(Document):
    """The problem with one field of a request."""

    field: str = Field(examples=["body.name"])
    message: str = Field(examples=["`name` must not be empty."])


class RunningItem(Document):
    """A workspace that takes a running slot."""

    id: str
    name: str
    phase: str
    desired_state: str


class Problem(Document):
    """An error; which of the optional fields it has depends on the code."""

    model_config = ConfigDict(frozen=True, extra="allow")

    code: Code
    message: str = Field(description="What happened and what to do, for a person.")
    request_id: str | None = Field(None, description="The request id in the logs of the server.")
    fields: list[FieldProblem] | None = Field(None, description="With INVALID_REQUEST.")
    operation: str | None = Field(None, description="With OPERATION_IN_PROGRESS: the running operation.")
    since: Timestamp | None = Field(None, description="With OPERATION_IN_PROGRESS: when it started.")
    phase: str | None = Field(None, description="With INVALID_STATE.")
    choices: list[str] | None = Field(
        None, description="With INVALID_STATE of a recover request: the choices that it accepts."
    )
    scope: str | None = Field(None, description="With LIMIT_EXCEEDED: `user` or `global`.")
    running: list[RunningItem] | None = Field(
        None, description="With LIMIT_EXCEEDED: the owner's workspaces that take a running slot."
    )
    retry_after_seconds: int | None = Field(None, description="The same as the Retry-After header.")


class ErrorBody(Document):
    """The body of every response with status 400 or above."""

    error: Problem


def error_document(code: Code, message: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the body of an error response."""
    return {"error": {"code": code, "message": message, **more}}
