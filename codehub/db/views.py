"""What a person may see of workspaces: one statement per answer, columns instead of entities."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Archive, User, Workspace
from codehub.domain.conditions import Conditions, WorkspaceId, conditions_from_json
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

ViewSelect: TypeAlias = Select[*tuple[Any, ...]]

_NEWEST_FIRST = (Workspace.created_at.desc(), Workspace.id.desc())
_OLDEST_CHANGE_FIRST = (Workspace.phase_changed_at, Workspace.id)
_COLUMNS = (
    Workspace.id,
    Workspace.owner_user_id,
    Workspace.name,
    Workspace.description,
    Workspace.memo,
    Workspace.image_ref,
    Workspace.instance_backend,
    Workspace.storage_backend,
    Workspace.conditions,
    Workspace.observed_at,
    Workspace.phase,
    Workspace.phase_changed_at,
    Workspace.operation,
    Workspace.op_started_at,
    Workspace.desired_state,
    Workspace.purge,
    Workspace.archive_key,
    Workspace.error_reason,
    Workspace.error_message,
    Workspace.error_count,
    Workspace.recover_requested_at.is_distinct_from(Workspace.recover_handled_at).label("recovering"),
    Workspace.standby_ttl_seconds,
    Workspace.archive_ttl_seconds,
    Workspace.last_access_at,
    Workspace.created_at,
    Workspace.updated_at,
    Workspace.deleted_at,
    Workspace.version,
    User.username.label("owner_username"),
    Archive.size_bytes.label("archive_size_bytes"),
    Archive.created_at.label("archived_at"),
)
# Built once: it is most of the work of making a statement.
_VIEWS: ViewSelect = (
    select(*_COLUMNS)
    .select_from(Workspace)
    .join(User, User.id == Workspace.owner_user_id)
    .outerjoin(Archive, Archive.key == Workspace.archive_key)
)


@dataclass(frozen=True)
class WorkspaceView:
    """Everything that a person may see of one workspace."""

    workspace_id: WorkspaceId
    owner_user_id: UUID
    owner_username: str
    name: str
    description: str | None
    memo: str | None
    image_ref: str
    instance_backend: str
    storage_backend: str
    conditions: Conditions
    observed_at: datetime | None
    phase: Phase
    phase_changed_at: datetime
    operation: Operation
    op_started_at: datetime | None
    desired_state: DesiredState
    purge: bool
    archive_key: str | None
    archive_size_bytes: int | None
    archived_at: datetime | None
    error_reason: ErrorReason | None
    error_message: str | None
    error_count: int
    recovering: bool
    standby_ttl_seconds: int | None
    archive_ttl_seconds: int | None
    last_access_at: datetime | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    version: int


@dataclass(frozen=True)
class Position:
    """Where a page ends."""

    created_at: datetime
    workspace_id: WorkspaceId


@dataclass(frozen=True)
class ViewFilter:
    """Which workspaces are listed; without an owner everybody's, without phases all."""

    owner_user_id: UUID | None = None
    phases: frozenset[Phase] = frozenset()
    text: str | None = None
    deleted: bool = False


@dataclass(frozen=True)
class ViewPage:
    """Some workspaces, and where the next page begins if there is one."""

    items: tuple[WorkspaceView, ...]
    next: Position | None


async def load_view(session: AsyncSession, workspace_id: WorkspaceId) -> WorkspaceView | None:
    """None if there is none or it is DELETED; one that is being deleted is still shown."""
    found = await list_views_by_id(session, [workspace_id])
    return found[0] if found else None


async def load_owner(session: AsyncSession, workspace_id: WorkspaceId) -> UUID | None:
    """Whose it is; also of a DELETED one, because its owner may take the deletion back."""
    return await session.scalar(select(Workspace.owner_user_id).where(Workspace.id == UUID(workspace_id)))


async def list_views(
    session: AsyncSession, filter_: ViewFilter, *, after: Position | None, limit: int
) -> ViewPage:
    """One page, newest first."""
    # One more than asked for tells whether there is a next page.
    found = await _load(session, select_page(filter_, after, limit + 1))
    items = tuple(found[:limit])
    end = Position(items[-1].created_at, items[-1].workspace_id) if len(found) > limit else None
    return ViewPage(items, end)


async def list_views_by_id(session: AsyncSession, ids: Collection[WorkspaceId]) -> list[WorkspaceView]:
    """Those of them that `load_view` would show, newest first."""
    those = _VIEWS.where(text(predicates.VISIBLE_BY_ID), Workspace.id.in_([UUID(each) for each in ids]))
    return await _load(session, those.order_by(*_NEWEST_FIRST))


async def count_by_phase(session: AsyncSession) -> dict[Phase, int]:
    """How many are in each phase, but for DELETED; phases that nobody is in count 0."""
    statement = select(Workspace.phase, func.count()).where(text(predicates.VISIBLE))
    found = {row[0]: row[1] for row in await session.execute(statement.group_by(Workspace.phase))}
    return {phase: found.get(phase, 0) for phase in Phase if phase is not Phase.DELETED}


async def list_errors(session: AsyncSession, *, limit: int) -> list[WorkspaceView]:
    """Those that wait for a person, the longest waiting first."""
    return await _load(session, select_errors(limit))


def select_page(filter_: ViewFilter, after: Position | None, limit: int) -> ViewSelect:
    statement = _VIEWS.where(text(predicates.DELETED if filter_.deleted else predicates.VISIBLE))
    if filter_.owner_user_id is not None:
        statement = statement.where(Workspace.owner_user_id == filter_.owner_user_id)
    if filter_.phases:
        statement = statement.where(Workspace.phase.in_(sorted(filter_.phases)))
    if filter_.text:
        statement = statement.where(_contains(filter_.text))
    if after is not None:
        # Compared as a pair, which the index answers; with OFFSET it would read every earlier page again.
        place = tuple_(Workspace.created_at, Workspace.id)
        statement = statement.where(place < tuple_(after.created_at, UUID(after.workspace_id)))
    return statement.order_by(*_NEWEST_FIRST).limit(limit)


def select_errors(limit: int) -> ViewSelect:
    # In a query of its own, because archives have a `deleted_at` too.
    broken = (
        select(Workspace.id).where(text(predicates.IN_ERROR)).order_by(*_OLDEST_CHANGE_FIRST).limit(limit)
    )
    return _VIEWS.where(Workspace.id.in_(broken)).order_by(*_OLDEST_CHANGE_FIRST)


def _contains(part: str) -> ColumnElement[bool]:
    return or_(
        Workspace.name.icontains(part, autoescape=True),
        Workspace.description.icontains(part, autoescape=True),
    )


async def _load(session: AsyncSession, statement: ViewSelect) -> list[WorkspaceView]:
    return [_view(row) for row in await session.execute(statement)]


def _view(row: Row[*tuple[Any, ...]]) -> WorkspaceView:
    return WorkspaceView(
        workspace_id=WorkspaceId(str(row.id)),
        owner_user_id=row.owner_user_id,
        owner_username=row.owner_username,
        name=row.name,
        description=row.description,
        memo=row.memo,
        image_ref=row.image_ref,
        instance_backend=row.instance_backend,
        storage_backend=row.storage_backend,
        conditions=conditions_from_json(row.conditions),
        observed_at=row.observed_at,
        phase=Phase(row.phase),
        phase_changed_at=row.phase_changed_at,
        operation=Operation(row.operation),
        op_started_at=row.op_started_at,
        desired_state=DesiredState(row.desired_state),
        purge=row.purge,
        archive_key=row.archive_key,
        archive_size_bytes=row.archive_size_bytes,
        archived_at=row.archived_at,
        error_reason=ErrorReason(row.error_reason) if row.error_reason else None,
        error_message=row.error_message,
        error_count=row.error_count,
        recovering=row.recovering,
        standby_ttl_seconds=row.standby_ttl_seconds,
        archive_ttl_seconds=row.archive_ttl_seconds,
        last_access_at=row.last_access_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted_at=row.deleted_at,
        version=row.version,
    )
