"""Database reads for the routes: one short transaction each."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias
from uuid import UUID

from api.context import Context
from api.live.wire import LiveWorkspace
from api.pagination import decode_log_key, decode_number, decode_position
from api.schemas.history import Activity
from api.serializers import serialize_live
from codehub.db import archive_views, audit_log, egress_pages, events, operations, views
from codehub.db.archive_views import ArchiveView
from codehub.db.audit_log import EntryView
from codehub.db.egress_pages import EgressView
from codehub.db.events import EventView
from codehub.db.running_slots import count_running
from codehub.db.usage import BUCKET, bucket_of, list_usage
from codehub.db.views import ViewFilter, ViewPage, WorkspaceView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.history import OperationRecord
from codehub.domain.states import Phase
from codehub.services.errors import WorkspaceNotFound

ACTIVITY_SHOWN = timedelta(days=1)
SNAPSHOT_SIZE = 10_000
EXPORT_PAGE = 500

AuditFilter: TypeAlias = audit_log.EntryFilter
EgressFilter: TypeAlias = egress_pages.EgressFilter


@dataclass(frozen=True)
class WorkspaceCounts:
    """How many workspaces there are, in all."""

    phases: dict[str, int]
    running: int
    needs_person: int


async def load_workspace(context: Context, workspace_id: WorkspaceId) -> WorkspaceView:
    """Return a workspace, also a DELETED one; raise WorkspaceNotFound if it does not exist."""
    async with context.reading.transaction() as session:
        view = await views.load_any_view(session, workspace_id)
    if view is None:
        raise WorkspaceNotFound(workspace_id)
    return view


async def list_workspaces(
    context: Context,
    owner: UUID | None,
    phases: Collection[Phase],
    search: str | None,
    *,
    deleted: bool,
    cursor: str | None,
    limit: int,
    only: frozenset[str] | None = None,
) -> ViewPage:
    """Return one page, newest first; without an owner those of all users, without phases those in any."""
    # PostgreSQL cannot store NUL, so no name contains one.
    text = search.replace("\0", "\ufffd") if search else None
    wanted = ViewFilter(owner, frozenset(phases), text, deleted, only)
    async with context.reading.transaction() as session:
        return await views.list_views(session, wanted, after=decode_position(cursor), limit=limit)


async def list_workspaces_by_id(context: Context, ids: Collection[WorkspaceId]) -> list[WorkspaceView]:
    async with context.reading.transaction() as session:
        return await views.list_views_by_id(session, ids)


async def list_needing_person(context: Context, limit: int) -> list[WorkspaceView]:
    """Return the workspaces with an error that only a person can end, longest waiting first."""
    async with context.reading.transaction() as session:
        return await views.list_needing_person(session, limit=limit)


async def load_live(context: Context, user_id: UUID, ids: Collection[str] | None) -> Sequence[LiveWorkspace]:
    """Return the workspaces of a user: those among the ids, or all for None."""
    if ids is None:
        page = await list_workspaces(
            context, user_id, (), None, deleted=False, cursor=None, limit=SNAPSHOT_SIZE
        )
        found: Sequence[WorkspaceView] = page.items
    else:
        found = await list_workspaces_by_id(context, [WorkspaceId(each) for each in ids])
    return [serialize_live(view, context) for view in found if view.owner_user_id == user_id]


async def count_by_phase(context: Context) -> dict[str, int]:
    """Count the workspaces in each phase but DELETED."""
    async with context.reading.transaction() as session:
        return dict((await views.count_by_phase(session)).items())


async def count_workspaces(context: Context) -> WorkspaceCounts:
    async with context.database.transaction() as session:
        return WorkspaceCounts(
            dict((await views.count_by_phase(session)).items()),
            await count_running(session),
            await views.count_needing_person(session),
        )


async def list_operations(
    context: Context, workspace_id: WorkspaceId, *, cursor: str | None, limit: int
) -> list[OperationRecord]:
    async with context.database.transaction() as session:
        before = decode_number(cursor)
        return await operations.list_operations(session, workspace_id, before=before, limit=limit)


async def load_operation(
    context: Context, workspace_id: WorkspaceId, operation_id: int
) -> OperationRecord | None:
    async with context.reading.transaction() as session:
        return await operations.load_operation(session, workspace_id, operation_id)


async def list_events(
    context: Context, workspace_id: WorkspaceId, *, cursor: str | None, limit: int
) -> list[EventView]:
    async with context.database.transaction() as session:
        before = decode_number(cursor)
        return await events.list_events(session, workspace_id, before=before, limit=limit)


async def list_archives(context: Context, workspace_id: WorkspaceId) -> list[ArchiveView]:
    async with context.database.transaction() as session:
        return await archive_views.list_archives(session, workspace_id)


async def read_activity(context: Context, workspace_id: WorkspaceId) -> Activity:
    since = bucket_of(context.now() - ACTIVITY_SHOWN) + BUCKET
    async with context.reading.transaction() as session:
        used = await list_usage(session, workspace_id, since)
    return Activity(bucket_seconds=round(BUCKET.total_seconds()), since=since, used=used)


async def list_audit_log(
    context: Context, wanted: AuditFilter, *, cursor: str | None, limit: int
) -> list[EntryView]:
    """Return one page of the audit log, newest first."""
    async with context.reading.transaction() as session:
        return await audit_log.list_entries(session, wanted, before=decode_number(cursor), limit=limit)


async def list_egress(
    context: Context, wanted: EgressFilter, *, cursor: str | None, limit: int
) -> Sequence[EgressView]:
    """Return one page of the connections of all workspaces, newest hour first."""
    async with context.reading.transaction() as session:
        return await egress_pages.list_egress(session, wanted, after=decode_log_key(cursor), limit=limit)


async def export_audit_log(context: Context, wanted: AuditFilter) -> AsyncIterator[list[EntryView]]:
    """Yield pages of all entries, newest first; no transaction stays open between pages."""
    cursor: str | None = None
    while page := await list_audit_log(context, wanted, cursor=cursor, limit=EXPORT_PAGE):
        yield page
        cursor = str(page[-1].id)
