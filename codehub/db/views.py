"""Workspaces as people see them: one statement per response, columns instead of entities."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, Uuid, bindparam, case, func, or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from codehub.db import predicates
from codehub.db.archive_views import OtherArchive, parse_other_archives, select_other_archives
from codehub.db.models import Archive, User, Workspace
from codehub.db.workspaces import Metadata
from codehub.domain.attention import LifecycleState
from codehub.domain.conditions import Conditions, Resource, WorkspaceId, conditions_from_json
from codehub.domain.port_shares import PortShares
from codehub.domain.port_shares import parse as parse_shares
from codehub.domain.recovery import CHOOSES_ARCHIVE
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

ViewSelect: TypeAlias = Select[*tuple[Any, ...]]

_NEWEST_FIRST = (Workspace.created_at.desc(), Workspace.id.desc())
_OLDEST_CHANGE_FIRST = (Workspace.phase_changed_at, Workspace.id)


@dataclass(frozen=True, kw_only=True)
class WorkspaceView(Metadata):
    """Everything that a person may see of a workspace; each field is a column unless listed below."""

    workspace_id: WorkspaceId
    owner_user_id: UUID
    owner_username: str
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
    archive_verified_at: datetime | None
    other_archives: tuple[OtherArchive, ...]
    error_reason: ErrorReason | None
    error_message: str | None
    error_count: int
    recovering: bool
    waiting_for: tuple[Resource, ...]
    waiting_since: datetime | None
    last_access_at: datetime | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    version: int
    origin_number: int | None = None
    port_shares: PortShares = field(default_factory=dict)
    disk_used_bytes: int | None = None
    disk_measured_at: datetime | None = None
    disk_complete: bool | None = None
    disk_limit_bytes: int | None = None

    @property
    def lifecycle(self) -> LifecycleState:
        return LifecycleState(
            phase=self.phase,
            operation=self.operation,
            desired_state=self.desired_state,
            recovering=self.recovering,
            deleted=self.deleted_at is not None,
            purge=self.purge,
            error_reason=self.error_reason,
            waiting=bool(self.waiting_for),
            out_of_reach=self.conditions.home_is_out_of_reach,
        )

    @property
    def is_visible(self) -> bool:
        return self.phase is not Phase.DELETED


_OTHER_COLUMNS: dict[str, ColumnElement[Any] | InstrumentedAttribute[Any]] = {
    "workspace_id": Workspace.id,
    "owner_username": User.username,
    "archive_size_bytes": Archive.size_bytes,
    "archived_at": Archive.created_at,
    "archive_verified_at": Archive.verified_at,
    # Only where *recover* may choose one of them.
    "other_archives": case((Workspace.error_reason.in_(sorted(CHOOSES_ARCHIVE)), select_other_archives())),
    # A disabled owner shares nothing, even while the workspace is still running.
    "port_shares": case((User.disabled_at.is_(None), Workspace.port_shares), else_=text("'{}'::jsonb")),
    "recovering": Workspace.recover_requested_at.is_distinct_from(Workspace.recover_handled_at),
}
_NAMES = tuple(field.name for field in fields(WorkspaceView))
_COLUMNS = tuple(
    _OTHER_COLUMNS[name] if name in _OTHER_COLUMNS else getattr(Workspace, name) for name in _NAMES
)
# Built once: building is most of the cost of a statement.
_VIEWS: ViewSelect = (
    select(*_COLUMNS)
    .select_from(Workspace)
    .join(User, User.id == Workspace.owner_user_id)
    .outerjoin(Archive, Archive.key == Workspace.archive_key)
)
_ONE_VIEW = _VIEWS.where(Workspace.id == bindparam("id", type_=Uuid()))


@dataclass(frozen=True)
class Position:
    """Where a page ends."""

    created_at: datetime
    workspace_id: WorkspaceId


@dataclass(frozen=True)
class ViewFilter:
    """Which workspaces to list; no owner means all owners, no phases means all phases."""

    owner_user_id: UUID | None = None
    phases: frozenset[Phase] = frozenset()
    text: str | None = None
    deleted: bool = False
    # Only these; None does not restrict.
    ids: frozenset[str] | None = None


@dataclass(frozen=True)
class ViewPage:
    """One page of workspaces, and where the next page begins if there is one."""

    items: tuple[WorkspaceView, ...]
    next: Position | None


async def load_view(session: AsyncSession, workspace_id: WorkspaceId) -> WorkspaceView | None:
    """Return the workspace; None if there is none or it is DELETED."""
    view = await load_any_view(session, workspace_id)
    return view if view is not None and view.is_visible else None


async def load_any_view(session: AsyncSession, workspace_id: WorkspaceId) -> WorkspaceView | None:
    """Return the workspace even if it is DELETED, because its owner may undelete it."""
    row = (await session.execute(_ONE_VIEW, {"id": UUID(workspace_id)})).one_or_none()
    return _view(row) if row else None


async def list_views(
    session: AsyncSession, filter_: ViewFilter, *, after: Position | None, limit: int
) -> ViewPage:
    """Return one page, newest first."""
    # One more than requested shows whether there is a next page.
    found = await _load(session, select_page(filter_, after, limit + 1))
    items = tuple(found[:limit])
    end = Position(items[-1].created_at, items[-1].workspace_id) if len(found) > limit else None
    return ViewPage(items, end)


async def list_views_by_id(session: AsyncSession, ids: Collection[WorkspaceId]) -> list[WorkspaceView]:
    """Return those of these workspaces that are not DELETED, newest first."""
    those = _VIEWS.where(text(predicates.VISIBLE), Workspace.id.in_([UUID(each) for each in ids]))
    return await _load(session, those.order_by(*_NEWEST_FIRST))


async def count_by_phase(session: AsyncSession) -> dict[Phase, int]:
    """Count the workspaces in each phase but DELETED."""
    statement = select(Workspace.phase, func.count()).where(text(predicates.VISIBLE))
    found = {row[0]: row[1] for row in await session.execute(statement.group_by(Workspace.phase))}
    return {phase: found.get(phase, 0) for phase in Phase if phase is not Phase.DELETED}


async def list_needing_person(session: AsyncSession, *, limit: int) -> list[WorkspaceView]:
    """Return workspaces with an error, also in a deletion, that need a person; the longest waiting first."""
    return await _load(session, select_needing_person(limit))


async def count_needing_person(session: AsyncSession) -> int:
    statement = select(func.count()).select_from(Workspace).where(text(predicates.NEEDS_PERSON))
    return (await session.scalars(statement)).one()


def select_page(filter_: ViewFilter, after: Position | None, limit: int) -> ViewSelect:
    statement = _VIEWS.where(text(predicates.DELETED if filter_.deleted else predicates.VISIBLE))
    if filter_.owner_user_id is not None:
        statement = statement.where(Workspace.owner_user_id == filter_.owner_user_id)
    if filter_.phases:
        statement = statement.where(Workspace.phase.in_(sorted(filter_.phases)))
    if filter_.text:
        statement = statement.where(_contains(filter_.text))
    if filter_.ids is not None:
        statement = statement.where(Workspace.id.in_([UUID(each) for each in filter_.ids]))
    if after is not None:
        # Compared as a pair, which the index supports; OFFSET would read all earlier pages again.
        position = tuple_(Workspace.created_at, Workspace.id)
        statement = statement.where(position < tuple_(after.created_at, UUID(after.workspace_id)))
    return statement.order_by(*_NEWEST_FIRST).limit(limit)


def select_needing_person(limit: int) -> ViewSelect:
    # In a subquery, because archives have a `deleted_at` too.
    waiting = (
        select(Workspace.id).where(text(predicates.NEEDS_PERSON)).order_by(*_OLDEST_CHANGE_FIRST).limit(limit)
    )
    return _VIEWS.where(Workspace.id.in_(waiting)).order_by(*_OLDEST_CHANGE_FIRST)


def _contains(part: str) -> ColumnElement[bool]:
    return or_(
        Workspace.name.icontains(part, autoescape=True),
        Workspace.description.icontains(part, autoescape=True),
    )


async def _load(session: AsyncSession, statement: ViewSelect) -> list[WorkspaceView]:
    return [_view(row) for row in await session.execute(statement)]


def _view(row: Row[*tuple[Any, ...]]) -> WorkspaceView:
    values = dict(zip(_NAMES, row, strict=True))
    for name, convert in _CONVERTERS.items():
        values[name] = convert(values[name])
    return WorkspaceView(**values)


def _workspace_id(found: UUID) -> WorkspaceId:
    return WorkspaceId(str(found))


def _error_reason(found: str | None) -> ErrorReason | None:
    return ErrorReason(found) if found else None


def _resources(found: list[str] | None) -> tuple[Resource, ...]:
    return tuple(Resource(each) for each in found or ())


_CONVERTERS: dict[str, Callable[[Any], object]] = {
    "workspace_id": _workspace_id,
    "conditions": conditions_from_json,
    "phase": Phase,
    "operation": Operation,
    "desired_state": DesiredState,
    "error_reason": _error_reason,
    "waiting_for": _resources,
    "other_archives": parse_other_archives,
    "port_shares": parse_shares,
}
