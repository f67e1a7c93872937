"""Network policies of workspaces, and the log of the names that they connected to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import EgressLog, Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressMode, EgressPolicy, Verdict

HOUR = timedelta(hours=1)
# PostgreSQL allows 65,535 parameters per statement.
ROWS_PER_INSERT = 5000


@dataclass(frozen=True)
class StoredPolicies:
    """The policies in the row of a workspace: the owner's choice and an administrator's limit."""

    choice: EgressPolicy | None
    limit: EgressPolicy | None


@dataclass(frozen=True, order=True)
class LogKey:
    """The key that connections of one hour are counted by."""

    workspace_id: WorkspaceId
    hour: datetime
    name: str
    port: int
    verdict: Verdict


@dataclass(frozen=True)
class LogEntry:
    """How often a workspace connected to a name, or was refused, in one hour."""

    hour: datetime
    name: str
    port: int
    verdict: Verdict
    count: int


def hour_of(moment: datetime) -> datetime:
    """Return the start of the hour, in UTC."""
    seconds = HOUR.total_seconds()
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, UTC)


async def load_policies(
    session: AsyncSession, ids: Collection[WorkspaceId]
) -> dict[WorkspaceId, StoredPolicies]:
    """Return the policies of those workspaces that are not deleted."""
    rows = await session.execute(
        select(
            Workspace.id,
            Workspace.egress_mode,
            Workspace.egress_names,
            Workspace.egress_limit_mode,
            Workspace.egress_limit_names,
        ).where(Workspace.id.in_([UUID(each) for each in ids]), text(predicates.VISIBLE))
    )
    return {
        WorkspaceId(str(row.id)): StoredPolicies(
            _policy(row.egress_mode, row.egress_names), _policy(row.egress_limit_mode, row.egress_limit_names)
        )
        for row in rows
    }


async def set_choice(
    session: AsyncSession, workspace_id: WorkspaceId, policy: EgressPolicy | None, now: datetime
) -> None:
    """Store the owner's policy; None means the installation's."""
    mode, names = _columns(policy)
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(egress_mode=mode, egress_names=names, updated_at=now)
    )


async def set_limit(
    session: AsyncSession, workspace_id: WorkspaceId, policy: EgressPolicy | None, now: datetime
) -> None:
    """Store an administrator's policy; None means the installation's."""
    mode, names = _columns(policy)
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(egress_limit_mode=mode, egress_limit_names=names, updated_at=now)
    )


async def add_to_log(session: AsyncSession, counts: Mapping[LogKey, int]) -> None:
    """Add the counts to those already stored."""
    # Sorted, so that two gateways cannot deadlock.
    rows = [
        {
            "workspace_id": UUID(key.workspace_id),
            "hour": key.hour,
            "name": key.name,
            "port": key.port,
            "verdict": key.verdict,
            "count": counts[key],
        }
        for key in sorted(counts)
    ]
    for start in range(0, len(rows), ROWS_PER_INSERT):
        new = insert(EgressLog).values(rows[start : start + ROWS_PER_INSERT])
        await session.execute(
            new.on_conflict_do_update(
                constraint="pk_egress_log",
                set_={"count": EgressLog.count + new.excluded.count},
            )
        )


async def list_log(
    session: AsyncSession, workspace_id: WorkspaceId, since: datetime, limit: int
) -> Sequence[LogEntry]:
    """Return the newest hours first; within an hour, refused names first, then the most frequent."""
    return [_entry(row) for row in await session.execute(select_log(workspace_id, since, limit))]


def select_log(workspace_id: WorkspaceId, since: datetime, limit: int) -> Select[*tuple[Any, ...]]:
    return (
        select(
            EgressLog.hour, EgressLog.name, EgressLog.port, EgressLog.verdict, EgressLog.count.label("count_")
        )
        .where(EgressLog.workspace_id == UUID(workspace_id), EgressLog.hour >= since)
        .order_by(
            EgressLog.hour.desc(),
            EgressLog.verdict.desc(),
            EgressLog.count.desc(),
            EgressLog.name,
        )
        .limit(limit)
    )


def _policy(mode: str | None, names: Collection[str] | None) -> EgressPolicy | None:
    return EgressPolicy(EgressMode(mode), frozenset(names or ())) if mode else None


def _columns(policy: EgressPolicy | None) -> tuple[str | None, list[str] | None]:
    return (policy.mode, sorted(policy.names)) if policy else (None, None)


def _entry(row: Row[*tuple[Any, ...]]) -> LogEntry:
    return LogEntry(row.hour, row.name, row.port, Verdict(row.verdict), row.count_)
