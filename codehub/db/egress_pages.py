"""The connections of all workspaces, in pages for administrators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.egress import LogKey
from codehub.db.models import EgressLog, User, Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import Verdict


@dataclass(frozen=True)
class EgressFilter:
    """Which connections to return; None does not restrict."""

    workspace_id: WorkspaceId | None = None
    owner: str | None = None
    # Substring of the name.
    name: str | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class EgressView(LogKey):
    """How often a workspace connected to a name, or was refused, in one hour.

    A workspace that no longer exists has no name and no owner.
    """

    count: int
    workspace: str | None
    owner: str | None


async def list_egress(
    session: AsyncSession, wanted: EgressFilter, *, after: LogKey | None, limit: int
) -> Sequence[EgressView]:
    """Return one page, newest hour first; `after` is the last key of the previous page."""
    return [_view(row) for row in await session.execute(select_egress(wanted, after, limit))]


def select_egress(wanted: EgressFilter, after: LogKey | None, limit: int) -> Select[*tuple[Any, ...]]:
    log = EgressLog
    return (
        select(
            log.workspace_id,
            log.hour,
            log.name,
            log.port,
            log.verdict,
            log.count.label("times"),
            Workspace.name.label("workspace"),
            User.username.label("owner"),
        )
        .outerjoin(Workspace, Workspace.id == log.workspace_id)
        .outerjoin(User, User.id == Workspace.owner_user_id)
        .where(*_conditions(wanted), *([] if after is None else [_comes_after(after)]))
        .order_by(log.hour.desc(), log.workspace_id, log.name, log.port, log.verdict)
        .limit(limit)
    )


def _view(row: Row[*tuple[Any, ...]]) -> EgressView:
    return EgressView(
        workspace_id=WorkspaceId(str(row.workspace_id)),
        hour=row.hour,
        name=row.name,
        port=row.port,
        verdict=Verdict(row.verdict),
        count=row.times,
        workspace=row.workspace,
        owner=row.owner,
    )


def _comes_after(key: LogKey) -> ColumnElement[bool]:
    within = tuple_(EgressLog.workspace_id, EgressLog.name, EgressLog.port, EgressLog.verdict)
    last = tuple_(UUID(key.workspace_id), key.name, key.port, key.verdict.value)
    # The first condition is redundant, but lets PostgreSQL use the index.
    return and_(EgressLog.hour <= key.hour, or_(EgressLog.hour < key.hour, within > last))


def _conditions(wanted: EgressFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.workspace_id is not None:
        found.append(EgressLog.workspace_id == UUID(wanted.workspace_id))
    if wanted.owner is not None:
        found.append(func.lower(User.username) == wanted.owner.lower())
    if wanted.name is not None:
        found.append(EgressLog.name.icontains(wanted.name, autoescape=True))
    if wanted.verdict is not None:
        found.append(EgressLog.verdict == wanted.verdict)
    return found
