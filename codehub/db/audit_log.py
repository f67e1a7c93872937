"""Rows of the audit log: who changed accounts and administration, when, and from where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, Text, cast, func, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import LAST_BIGINT
from codehub.db.models import AuditEntry


@dataclass(frozen=True)
class NewEntry:
    """An entry to add."""

    at: datetime
    action: str
    outcome: str
    actor: str
    actor_id: UUID | None = None
    address: str | None = None
    target: str | None = None
    target_id: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EntryView(NewEntry):
    """One entry; `action` is a string, because other releases may have other actions."""

    id: int = 0


@dataclass(frozen=True)
class EntryFilter:
    """Which entries to return; None does not restrict."""

    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    # Substring of the actor, the target, its id, the address or the details.
    text: str | None = None


async def insert_entry(session: AsyncSession, entry: NewEntry) -> None:
    values = {**vars(entry), "detail": dict(entry.detail)}
    await session.execute(insert(AuditEntry).values(values))


async def list_entries(
    session: AsyncSession, wanted: EntryFilter, *, before: int | None, limit: int
) -> list[EntryView]:
    """Return one page, newest first; `before` is the last `id` of the previous page."""
    return [_view(row) for row in await session.execute(select_entries(wanted, before, limit))]


def select_entries(wanted: EntryFilter, before: int | None, limit: int) -> Select[*tuple[Any, ...]]:
    return (
        select(*AuditEntry.__table__.columns)
        .where(AuditEntry.id < (LAST_BIGINT if before is None else before), *_conditions(wanted))
        .order_by(AuditEntry.id.desc())
        .limit(limit)
    )


def _conditions(wanted: EntryFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.actor is not None:
        found.append(func.lower(AuditEntry.actor) == wanted.actor.lower())
    if wanted.action is not None:
        found.append(AuditEntry.action == wanted.action)
    if wanted.outcome is not None:
        found.append(AuditEntry.outcome == wanted.outcome)
    if wanted.since is not None:
        found.append(AuditEntry.at >= wanted.since)
    if wanted.until is not None:
        found.append(AuditEntry.at < wanted.until)
    if wanted.text is not None:
        columns = (
            AuditEntry.actor,
            AuditEntry.target,
            AuditEntry.target_id,
            AuditEntry.address,
            cast(AuditEntry.detail, Text()),
        )
        found.append(or_(*(column.icontains(wanted.text, autoescape=True) for column in columns)))
    return found


def _view(row: Row[*tuple[Any, ...]]) -> EntryView:
    return EntryView(**row._asdict())
