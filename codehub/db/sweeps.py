"""Queries of the sweeps: what has not converged, what was last observed, and what is idle."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Row,
    Select,
    TextClause,
    bindparam,
    func,
    literal,
    select,
    text,
    union,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from codehub.db import predicates
from codehub.db.models import User, Workspace
from codehub.db.snapshots import workspace_ids
from codehub.domain.conditions import Conditions, Resource, WorkspaceId, conditions_from_json
from codehub.domain.states import DesiredState, Operation, Phase

# A workspace that waits is observed ever less often: after half the time that it has waited so far, and at
# least once an hour. The sweep itself notices when the provider is back.
IS_DUE = (
    "coalesce(retry_at, :now) <= :now AND (waiting_since IS NULL OR "
    "observed_at + least((observed_at - waiting_since) / 2, interval '1 hour') <= :now)"
)


# ARCHIVED and deleted workspaces have no container or volume; if they do, the listing has them.
HAS_HOME = "deleted_at IS NULL AND phase IN ('RUNNING', 'STANDBY')"


@dataclass(frozen=True)
class Ttl:
    """The default and the upper bound of an idle time."""

    default: timedelta
    longest: timedelta


@dataclass(frozen=True)
class Unconverged:
    """A workspace with something left to do; `busy` means that an operation is claimed."""

    workspace_id: WorkspaceId
    owner_id: str
    busy: bool


@dataclass(frozen=True)
class LastObserved:
    """What was last observed of a workspace."""

    workspace_id: WorkspaceId
    owner_id: str
    conditions: Conditions
    busy: bool


@dataclass(frozen=True)
class WantedByDisabled:
    """A workspace that is wanted running although its owner is disabled."""

    workspace_id: WorkspaceId
    owner_id: str
    phase: Phase


async def not_converged(
    session: AsyncSession, limit: int, *, now: datetime, silent: Collection[Resource] = ()
) -> list[Unconverged]:
    """Return the workspaces that have something left to do now, also deletions and recoveries.

    The ones observed longest ago come first. Those that wait for one of the `silent` providers, or for
    their next attempt, are left out.
    """
    rows = await session.execute(select_not_converged(limit, now=now, silent=silent))
    return [Unconverged(WorkspaceId(str(row[0])), str(row[1]), row[2] != Operation.NONE) for row in rows]


async def count_unfinished(session: AsyncSession, desired: DesiredState) -> int:
    """Count the workspaces that are on their way to this state, or wait to begin."""
    return (await session.scalars(select_count_unfinished(desired))).one()


def select_not_converged(
    limit: int, *, now: datetime, silent: Collection[Resource] = ()
) -> Select[UUID, UUID, str]:
    columns = select(
        Workspace.id,
        Workspace.owner_user_id,
        Workspace.operation,
        Workspace.observed_at,
        Workspace.waiting_for,
        Workspace.waiting_since,
        Workspace.retry_at,
    )
    # The database cannot estimate in how few rows two columns differ; with an order and a limit, it reads the
    # index and not the table.
    recovering = columns.where(text(predicates.RECOVERING)).order_by(Workspace.id).limit(limit)
    # One arm for each partial index; a union, because a recovering workspace may be in another arm too.
    unfinished = union(
        columns.where(text(predicates.NOT_CONVERGED)),
        columns.where(text(predicates.BEING_DELETED)),
        select(recovering.subquery()),
    ).subquery()
    # Fair even if some cannot converge: what was observed goes to the end.
    return (
        select(unfinished.c.id, unfinished.c.owner_user_id, unfinished.c.operation)
        .where(_is_due(now, silent))
        .order_by(unfinished.c.observed_at.nulls_first(), unfinished.c.id)
        .limit(limit)
    )


def select_count_unfinished(desired: DesiredState) -> Select[int]:
    statement = select(func.count()).select_from(Workspace)
    return statement.where(text(predicates.NOT_CONVERGED), Workspace.desired_state == desired)


async def load_last_observed(session: AsyncSession, ids: Collection[WorkspaceId]) -> list[LastObserved]:
    """Return what was last observed of these workspaces."""
    rows = await session.execute(_select().where(Workspace.id.in_([UUID(each) for each in ids])))
    return [_last_observed(row) for row in rows]


async def load_all_with_homes(session: AsyncSession) -> list[LastObserved]:
    """Return what was last observed of all workspaces with a home on disk."""
    return [_last_observed(row) for row in await session.execute(_select().where(text(HAS_HOME)))]


def _is_due(now: datetime, silent: Collection[Resource]) -> TextClause:
    words = ", ".join(f"'{resource}'" for resource in sorted(silent))
    due = text(f"{IS_DUE} AND NOT coalesce(waiting_for && ARRAY[{words}]::text[], false)")
    return due.bindparams(bindparam("now", now, type_=DateTime(timezone=True)))


def _select() -> Select[Any]:
    return select(Workspace.id, Workspace.owner_user_id, Workspace.conditions, Workspace.operation)


def _last_observed(row: Row[Any]) -> LastObserved:
    return LastObserved(
        workspace_id=WorkspaceId(str(row.id)),
        owner_id=str(row.owner_user_id),
        conditions=conditions_from_json(row.conditions),
        busy=row.operation != Operation.NONE,
    )


async def due_for_standby(session: AsyncSession, now: datetime, ttl: Ttl, limit: int) -> list[WorkspaceId]:
    """Return workspaces that run, have no operation, and were unused for longer than their standby TTL."""
    return workspace_ids(await session.scalars(select_due_for_standby(now, ttl, limit)))


async def due_for_archive(session: AsyncSession, now: datetime, ttl: Ttl, limit: int) -> list[WorkspaceId]:
    """Return workspaces in STANDBY, idle for longer than their archive TTL; owners take turns."""
    return workspace_ids(await session.scalars(select_due_for_archive(now, ttl, limit)))


async def load_wanted_by_disabled(
    session: AsyncSession, limit: int, *, owner_user_id: UUID | None = None
) -> list[WantedByDisabled]:
    """Return workspaces that are wanted running although their owner is disabled, and can be stopped now."""
    rows = await session.execute(select_wanted_by_disabled(limit, owner_user_id))
    return [WantedByDisabled(WorkspaceId(str(row[0])), str(row[1]), Phase(row[2])) for row in rows]


def select_wanted_by_disabled(limit: int, owner_user_id: UUID | None) -> Select[UUID, UUID, str]:
    disabled = select(User.id).where(User.disabled_at.is_not(None))
    if owner_user_id is not None:
        disabled = disabled.where(User.id == owner_user_id)
    return (
        select(Workspace.id, Workspace.owner_user_id, Workspace.phase)
        .where(
            # Matches a partial index: few workspaces run at once.
            text(predicates.COUNTS_AS_RUNNING),
            Workspace.owner_user_id.in_(disabled),
            Workspace.deleted_at.is_(None),
            Workspace.desired_state == DesiredState.RUNNING,
            Workspace.operation == Operation.NONE,
            Workspace.phase != Phase.ERROR,
        )
        .order_by(Workspace.id)
        .limit(limit)
    )


def select_due_for_standby(now: datetime, ttl: Ttl, limit: int) -> Select[UUID]:
    # GREATEST ignores NULL: a workspace that was never used counts from its start.
    used_at = func.greatest(Workspace.last_access_at, Workspace.phase_changed_at)
    due_at = used_at + _ttl(Workspace.standby_ttl_seconds, ttl)
    due = _due(predicates.IDLE_RUNNING, due_at, now).subquery()
    return select(due.c.id).order_by(due.c.phase_changed_at).limit(limit)


def select_due_for_archive(now: datetime, ttl: Ttl, limit: int) -> Select[UUID]:
    due_at = Workspace.phase_changed_at + _ttl(Workspace.archive_ttl_seconds, ttl)
    due = _due(predicates.IDLE_STANDBY, due_at, now).subquery()
    turn = func.row_number().over(partition_by=due.c.owner_user_id, order_by=due.c.phase_changed_at)
    return select(due.c.id).order_by(turn, due.c.phase_changed_at).limit(limit)


def _ttl(seconds: InstrumentedAttribute[int | None], ttl: Ttl) -> ColumnElement[timedelta]:
    own = func.coalesce(seconds * literal(timedelta(seconds=1)), ttl.default)
    return func.least(own, literal(ttl.longest))


def _due(candidates: str, due_at: ColumnElement[datetime], now: datetime) -> Select[UUID, UUID, datetime]:
    return select(Workspace.id, Workspace.owner_user_id, Workspace.phase_changed_at).where(
        text(candidates), due_at < literal(now, DateTime(timezone=True))
    )
