"""Cursors: opaque strings that say where the next page begins."""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query

from api.errors import ApiError
from api.schemas.errors import Code
from codehub.db.egress import LogKey
from codehub.db.views import Position
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import Verdict

PageSize = Annotated[int, Query(ge=1, le=200, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the previous page.")]

# Long enough for a cursor that contains a name.
LogCursor = Annotated[str | None, Query(max_length=600, description="`next_cursor` of the previous page.")]

MAX_DIGITS = 18
LAST_PORT = 65535


def encode_position(position: Position | None) -> str | None:
    if position is None:
        return None
    return _encode([position.created_at.isoformat(), position.workspace_id])


def decode_position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    try:
        created_at, workspace_id = _decode(cursor)
        return Position(_to_utc(created_at), WorkspaceId(str(UUID(workspace_id))))
    except (ValueError, TypeError, AttributeError, OverflowError, binascii.Error) as error:
        raise _unknown_cursor() from error


def encode_log_key(key: LogKey | None) -> str | None:
    if key is None:
        return None
    return _encode([key.workspace_id, key.hour.isoformat(), key.name, key.port, key.verdict])


def decode_log_key(cursor: str | None) -> LogKey | None:
    if cursor is None:
        return None
    try:
        workspace_id, hour, name, port, verdict = _decode(cursor)
        return LogKey(
            WorkspaceId(str(UUID(workspace_id))),
            _to_utc(hour),
            _stored_text(name),
            range(LAST_PORT + 1)[port],
            Verdict(verdict),
        )
    except (ValueError, TypeError, AttributeError, OverflowError, IndexError, binascii.Error) as error:
        raise _unknown_cursor() from error


def _stored_text(text: str) -> str:
    """Return the text. Raise ValueError if PostgreSQL cannot store it, such as half a surrogate pair."""
    if "\0" in text:
        raise ValueError("NUL in a text")
    return text.encode().decode()


def _encode(values: list[object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def _decode(cursor: str) -> Any:  # noqa: ANN401 (whatever a client sends)
    return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))


def decode_number(cursor: str | None) -> int | None:
    """Decode the cursor of a list that is ordered by id."""
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > MAX_DIGITS:
        raise _unknown_cursor()
    return int(cursor)


def _unknown_cursor() -> ApiError:
    message = "Unknown cursor. Omit it to start from the first page."
    return ApiError(400, Code.INVALID_REQUEST, message)


def _to_utc(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    # Raises OverflowError if the time does not exist in UTC, before year 1 or after 9999.
    return moment.astimezone(UTC)
