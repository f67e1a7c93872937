"""Answers that are encoded once, by pydantic's own encoder."""

import base64
import binascii
import json
from datetime import UTC, datetime
from uuid import UUID

from pydantic import BaseModel
from starlette.responses import Response

from api.errors import ApiError
from api.schemas.errors import Code
from codehub.db.views import Position
from codehub.domain.conditions import WorkspaceId

JSON = "application/json"
MAX_DIGITS = 18


def json_response(document: BaseModel, status: int = 200, **headers: str) -> Response:
    """The document as it is: what a route returns otherwise would be validated and encoded a second time."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(document.model_dump_json(), status, headers=names, media_type=JSON)


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
        return Position(_aware(created_at), WorkspaceId(_uuid(workspace_id)))
    except (ValueError, TypeError, AttributeError, OverflowError, binascii.Error) as error:
        raise unknown_cursor() from error


def decode_number(cursor: str | None) -> int | None:
    """A cursor that is the id of a line."""
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > MAX_DIGITS:
        raise unknown_cursor()
    return int(cursor)


def unknown_cursor() -> ApiError:
    message = "This cursor is none of ours; start without one."
    return ApiError(400, Code.INVALID_REQUEST, message)


def _aware(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    # The same moment may be none in UTC: the first and the last day of all have neighbours in no calendar.
    return moment.astimezone(UTC)


def _uuid(text: str) -> str:
    return str(UUID(text))
