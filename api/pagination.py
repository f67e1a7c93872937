"""Cursors: opaque strings that say where the next page begins."""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Query

from api.errors import ApiError
from api.schemas.errors import Code
from codehub.db.views import Position
from codehub.domain.conditions import WorkspaceId

PageSize = Annotated[int, Query(ge=1, le=200, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the previous page.")]

MAX_DIGITS = 18


def encode_position(position: Position | None) -> str | None:
    if position is None:
        return None
    text = json.dumps([position.created_at.isoformat(), position.workspace_id])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        created_at, workspace_id = json.loads(text)
        return Position(_to_utc(created_at), WorkspaceId(str(UUID(workspace_id))))
    except (ValueError, TypeError, AttributeError, OverflowError, binascii.Error) as error:
        raise _unknown_cursor() from error


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
