"""Every error has one shape; the code is for programs, the message for people."""

from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Timestamp


class Code(StrEnum):
    """What went wrong, as a program may ask."""

    INVALID_REQUEST = "INVALID_REQUEST"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
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
    TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    UPSTREAM_UNAVAILABLE = "UPSTREAM_UNAVAILABLE"
    DEPENDENCY_UNAVAILABLE = "DEPENDENCY_UNAVAILABLE"


class FieldProblem(Document):
    """What is wrong with one field of a request."""

    field: str = Field(examples=["body.name"])
    message: str = Field(examples=["String should have at least 1 character"])


class RunningItem(Document):
    """A workspace that takes one of the places that may run."""

    id: str
    name: str
    phase: str
    desired_state: str


class Problem(Document):
    """One error; what goes beyond code and message depends on the code."""

    model_config = ConfigDict(frozen=True, extra="allow")

    code: Code
    message: str = Field(description="A sentence for a person that says what to do.")
    request_id: str | None = Field(None, description="Find it in the logs of the server.")
    fields: list[FieldProblem] | None = Field(None, description="With INVALID_REQUEST.")
    operation: str | None = Field(None, description="With OPERATION_IN_PROGRESS: what is under way.")
    since: Timestamp | None = Field(None, description="With OPERATION_IN_PROGRESS: since when.")
    phase: str | None = Field(None, description="With INVALID_STATE.")
    choices: list[str] | None = Field(None, description="With INVALID_STATE of recover: what it accepts.")
    scope: str | None = Field(None, description="With LIMIT_EXCEEDED: `user` or `global`.")
    running: list[RunningItem] | None = Field(None, description="With LIMIT_EXCEEDED: your own.")
    retry_after_seconds: int | None = Field(None, description="The same as the Retry-After header.")


class ErrorBody(Document):
    """What every answer of 400 and above carries."""

    error: Problem


def error_document(code: Code, message: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """The body, without what does not apply."""
    return {"error": {"code": code, "message": message, **more}}
