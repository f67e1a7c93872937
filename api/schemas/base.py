"""What all documents have in common."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


def _is_text(value: str) -> str:
    # PostgreSQL cannot store NUL, and nothing good comes of the others in a name.
    if any(character in value for character in map(chr, (*range(9), 11, 12, *range(14, 32), 127))):
        raise ValueError("must not contain control characters")
    # Lone surrogates are valid JSON but no text.
    value.encode()
    return value


Text = AfterValidator(_is_text)
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), Text]
Description = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000), Text]
Memo = Annotated[str, StringConstraints(max_length=65_536), Text]
ImageRef = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")]
# A minute, so that nobody's workspace stops between two keystrokes; ten years is as good as never.
TtlSeconds = Annotated[int, Field(ge=60, le=315_360_000)]
Username = Annotated[str, StringConstraints(min_length=1, max_length=64), Text]
Password = Annotated[str, StringConstraints(min_length=1, max_length=1_024)]
Timestamp = datetime


def one_spelling(value: object) -> UUID:
    """An id as we write it: one thing has one name, in paths and in logs too."""
    if isinstance(value, str):
        found = UUID(value)
        if str(found) == value:
            return found
    raise ValueError("must be an id as the API shows it")


Id = Annotated[UUID, BeforeValidator(one_spelling), Field(description="An id as the API shows it.")]


class Document(BaseModel):
    """What the API answers."""

    model_config = ConfigDict(frozen=True)


class Form(BaseModel):
    """What the API is sent: a field that it does not know is a mistake worth telling."""

    model_config = ConfigDict(frozen=True, extra="forbid")
