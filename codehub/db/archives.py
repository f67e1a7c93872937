"""Rows of archives: written when an archive is committed, and by the collector."""

from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Archive, Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.garbage import ArchiveOwner
from codehub.domain.naming import ArchiveName, parse_archive_key
from codehub.domain.states import ErrorReason, Phase
from codehub.ports import UNRECORDED, ExpectedArchive


@dataclass(frozen=True)
class ParkedArchive:
    """The archive that an ARCHIVED workspace depends on."""

    workspace_id: WorkspaceId
    owner_id: str
    key: str | None


@dataclass(frozen=True)
class Orphan:
    """An archive that nothing needs, and when that was first seen."""

    key: str
    since: datetime


async def record_archive(
    session: AsyncSession, key: str, *, size_bytes: int, sha256: str, now: datetime
) -> None:
    """Record a committed archive; repeating it changes nothing."""
    name = _parse(key)
    facts = {"size_bytes": size_bytes, "sha256": sha256}
    statement = insert(Archive).values(
        key=key,
        workspace_id=UUID(name.workspace_id),
        archive_op_id=UUID(name.archive_op_id),
        created_at=now,
        **facts,
    )
    await session.execute(statement.on_conflict_do_update(index_elements=[Archive.key], set_=facts))


async def mark_verified(session: AsyncSession, key: str, now: datetime) -> None:
    """Record that the whole archive was read and its checksum matched."""
    await session.execute(update(Archive).where(Archive.key == key).values(verified_at=now))


async def load_expected(session: AsyncSession, key: str) -> ExpectedArchive:
    """Return what was recorded about the archive, or UNRECORDED for one of an older installation."""
    columns = select(Archive.size_bytes, Archive.sha256).where(Archive.key == key)
    row = (await session.execute(columns)).one_or_none()
    return ExpectedArchive(row[0], row[1]) if row else UNRECORDED


async def load_owners(
    session: AsyncSession, workspace_ids: Collection[WorkspaceId], *, for_update: bool = False
) -> dict[WorkspaceId, ArchiveOwner]:
    """Return what the collector needs to know about these workspaces; unknown ids are left out."""
    statement = select(
        Workspace.id,
        Workspace.phase,
        Workspace.archive_key,
        Workspace.archive_op_id,
        Workspace.error_reason,
        Workspace.deleted_at,
        Workspace.purge,
    ).where(Workspace.id.in_([UUID(each) for each in workspace_ids]))
    if for_update:
        statement = statement.with_for_update(key_share=True)
    rows = (await session.execute(statement)).all()
    # After the lock, under which a recovery marks what it leaves behind.
    given_up = await _load_given_up(session, [row.id for row in rows])
    return {
        WorkspaceId(str(row.id)): ArchiveOwner(
            phase=Phase(row.phase),
            archive_key=row.archive_key,
            archive_op_id=str(row.archive_op_id) if row.archive_op_id else None,
            error_reason=ErrorReason(row.error_reason) if row.error_reason else None,
            deleted_at=row.deleted_at,
            purge=row.purge,
            given_up=frozenset(given_up.get(row.id, ())),
        )
        for row in rows
    }


async def mark_orphans(session: AsyncSession, keys: Iterable[str], now: datetime) -> list[Orphan]:
    """Record when each was first seen as an orphan, and return that; a restart does not reset it.

    A time in the future, from a wrong clock, is corrected to now.
    """
    rows = [
        {
            "key": key,
            "workspace_id": UUID(_parse(key).workspace_id),
            "archive_op_id": UUID(_parse(key).archive_op_id),
            "created_at": now,
            "orphan_since": now,
        }
        for key in keys
    ]
    if not rows:
        return []
    inserted = insert(Archive).values(rows)
    first_seen = func.least(Archive.orphan_since, inserted.excluded.orphan_since)
    statement = inserted.on_conflict_do_update(
        index_elements=[Archive.key], set_={"orphan_since": first_seen}
    ).returning(Archive.key, Archive.orphan_since)
    return [Orphan(row[0], row[1] or now) for row in await session.execute(statement)]


async def unmark_orphans(session: AsyncSession, keys: Collection[str]) -> None:
    """Record that something needs these again; the grace period of an orphan starts over."""
    if keys:
        await session.execute(
            update(Archive)
            .where(Archive.key.in_(keys), Archive.orphan_since.is_not(None))
            .values(orphan_since=None)
        )


async def mark_collected(session: AsyncSession, key: str, now: datetime) -> None:
    """Record the removal before the object is removed, so that an undelete sees it."""
    await session.execute(update(Archive).where(Archive.key == key).values(deleted_at=now))


async def is_collected(session: AsyncSession, key: str) -> bool:
    """Return whether the collector removes this archive; call it under the lock of the workspace."""
    said = await session.scalar(select(Archive.deleted_at).where(Archive.key == key))
    return said is not None


async def is_available(session: AsyncSession, key: str) -> bool:
    """Return whether the archive is committed and not collected; call it under the lock of the workspace."""
    statement = select(Archive.key).where(
        Archive.key == key, Archive.sha256.is_not(None), Archive.deleted_at.is_(None)
    )
    return await session.scalar(statement) is not None


async def mark_given_up(
    session: AsyncSession,
    workspace_id: WorkspaceId,
    *,
    current: str | None,
    chosen: str | None,
    now: datetime,
) -> None:
    """Keep all archives but the chosen one until the workspace is deleted; call it under its lock."""
    if current is not None:
        await _ensure_row(session, current, now)
    existing = (Archive.workspace_id == UUID(workspace_id), Archive.deleted_at.is_(None))
    await session.execute(
        update(Archive)
        .where(*existing, Archive.key != (chosen or ""), Archive.given_up_at.is_(None))
        .values(given_up_at=now, orphan_since=None)
    )
    await session.execute(
        update(Archive)
        .where(*existing, Archive.key == (chosen or ""))
        .values(given_up_at=None, orphan_since=None)
    )


async def load_parked_archives(session: AsyncSession) -> AsyncIterator[ParkedArchive]:
    """Iterate over the archives that are the only copy of a home, a page at a time."""
    statement = (
        select(Workspace.id, Workspace.owner_user_id, Workspace.archive_key)
        .where(text(predicates.NOT_DELETED), Workspace.phase == Phase.ARCHIVED)
        .execution_options(yield_per=1000)
    )
    async for row in await session.stream(statement):
        yield ParkedArchive(WorkspaceId(str(row[0])), str(row[1]), row[2])


async def _load_given_up(session: AsyncSession, ids: Collection[UUID]) -> dict[UUID, list[str]]:
    statement = select(Archive.workspace_id, Archive.key).where(
        Archive.workspace_id.in_(ids), Archive.given_up_at.is_not(None)
    )
    found: dict[UUID, list[str]] = {}
    for workspace_id, key in await session.execute(statement):
        found.setdefault(workspace_id, []).append(key)
    return found


async def _ensure_row(session: AsyncSession, key: str, now: datetime) -> None:
    """Add a row for an archive of an older installation, which had none."""
    name = parse_archive_key(key)
    if name is None:
        return
    statement = insert(Archive).values(
        key=key,
        workspace_id=UUID(name.workspace_id),
        archive_op_id=UUID(name.archive_op_id),
        created_at=now,
    )
    await session.execute(statement.on_conflict_do_nothing(index_elements=[Archive.key]))


def _parse(key: str) -> ArchiveName:
    name = parse_archive_key(key)
    if name is None:
        raise ValueError(f"not the key of an archive: {key!r}")
    return name
