"""Types and base classes that all schemas share."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

# All but tab and line breaks. PostgreSQL cannot store NUL.
CONTROL_CHARACTERS = frozenset(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))


def _check_text(value: str) -> str:
    if not CONTROL_CHARACTERS.isdisjoint(value):
        raise ValueError("must not contain control characters")
    return value


Text = AfterValidator(_check_text)
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), Text]
Description = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000), Text]
Memo = Annotated[str, StringConstraints(max_length=65_536), Text]
ImageRef = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")]
# At least a minute, so that no workspace stops between two keystrokes; at most ten years.
TtlSeconds = Annotated[int, Field(ge=60, le=315_360_000)]
Username = Annotated[str, StringConstraints(min_length=1, max_length=64), Text]
Password = Annotated[str, StringConstraints(min_length=1, max_length=1_024)]
OneTimeCode = Annotated[str, StringConstraints(min_length=1, max_length=64), Text]
Timestamp = datetime


def parse_id(value: object) -> UUID:
    """Parse an id as the API writes it; other spellings of a UUID would hide it in logs."""
    if isinstance(value, str) and is_id(value):
        return UUID(value)
    raise ValueError("must be an id, as the API shows it")


def is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


Id = Annotated[UUID, BeforeValidator(parse_id), Field(description="An id, as the API shows it.")]


class Document(BaseModel):
    """A response, or part of one."""

    model_config = ConfigDict(frozen=True)


class Form(BaseModel):
    """A request body; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
