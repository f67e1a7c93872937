"""The audit log, for administrators."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AfterValidator, AwareDatetime
from starlette.responses import StreamingResponse

from api import queries
from api.context import ApiContext, Context
from api.pagination import Cursor, PageSize
from api.queries import AuditFilter
from api.responses import json_response
from api.schemas.audit import AuditItem, AuditPage
from api.schemas.base import Text
from api.security.access import API
from api.security.guard import GuardedRoute

router = APIRouter(prefix=f"{API}/admin/audit", route_class=GuardedRoute, tags=["administration"])

JSON_LINES = "application/x-ndjson"
EXPORT_EXAMPLE = '{"id":7,"at":"2026-11-16T09:30:00Z","action":"sign_in","outcome":"success","actor":"ada"}\n'


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must be a time between the years 1 and 9999") from error


Moment = Annotated[AwareDatetime, AfterValidator(_to_utc)]
Who = Annotated[str | None, Query(max_length=200, description="Only entries of this user."), Text]
What = Annotated[str | None, Query(max_length=100, description="Only this action."), Text]
Since = Annotated[Moment | None, Query(description="Only entries at or after this time.")]
Until = Annotated[Moment | None, Query(description="Only entries before this time.")]
Part = Annotated[
    str | None,
    Query(alias="q", max_length=100, description="Part of the user, target, address or details."),
    Text,
]


async def _filter(
    actor: Who = None,
    action: What = None,
    *,
    outcome: Annotated[
        Literal["success", "failure"] | None, Query(description="Only entries with this outcome.")
    ] = None,
    since: Since = None,
    until: Until = None,
    part: Part = None,
) -> AuditFilter:
    return AuditFilter(actor, action, outcome, since, until, part)


Wanted = Annotated[AuditFilter, Depends(_filter)]


@router.get("", response_model=AuditPage, summary="Read the audit log")
async def read_audit_log(
    context: ApiContext, wanted: Wanted, cursor: Cursor = None, limit: PageSize = 50
) -> Response:
    """Return sign-ins, tokens, and changes to accounts and administration, newest first."""
    found = await queries.list_audit_log(context, wanted, cursor=cursor, limit=limit)
    items = [AuditItem.model_validate(each, from_attributes=True) for each in found]
    last = str(found[-1].id) if len(found) == limit else None
    return json_response(AuditPage(items=items, next_cursor=last))


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}, "example": EXPORT_EXAMPLE}}}},
    summary="Export the audit log",
)
async def export_audit_log(context: ApiContext, wanted: Wanted) -> Response:
    """Return all matching entries as JSON lines, newest first."""
    headers = {"Content-Disposition": 'attachment; filename="codehub-audit-log.jsonl"'}
    return StreamingResponse(_lines(context, wanted), media_type=JSON_LINES, headers=headers)


async def _lines(context: Context, wanted: AuditFilter) -> AsyncIterator[str]:
    async for page in queries.export_audit_log(context, wanted):
        items = (AuditItem.model_validate(each, from_attributes=True) for each in page)
        yield "".join(f"{item.model_dump_json()}\n" for item in items)
