"""What is known of archives: written when one is committed, and by the collector."""

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
    """The archive that a parked workspace depends on."""

    workspace_id: WorkspaceId
    owner_id: str
    key: str | None


@dataclass(frozen=True)
class Orphan:
    """An archive that nothing needs, and since when that has been seen."""

    key: str
    since: datetime


async def record_archive(
    session: AsyncSession, key: str, *, size_bytes: int, sha256: str, now: datetime
) -> None:
    """Remember a committed archive; the same upload told twice changes nothing."""
    name = _name(key)
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
    """Somebody has read all of it and found its checksum right."""
    await session.execute(update(Archive).where(Archive.key == key).values(verified_at=now))


async def load_expected(session: AsyncSession, key: str) -> ExpectedArchive:
    """What was recorded of an archive; nothing of one that an older installation has made."""
    columns = select(Archive.size_bytes, Archive.sha256).where(Archive.key == key)
    row = (await session.execute(columns)).one_or_none()
    return ExpectedArchive(row[0], row[1]) if row else UNRECORDED


async def load_owners(
    session: AsyncSession, workspace_ids: Collection[WorkspaceId], *, for_update: bool = False
) -> dict[WorkspaceId, ArchiveOwner]:
    """What the collector looks at of these workspaces; an id that is not in it belongs to nobody."""
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
    # After the lock: what a recovery leaves behind is marked under it.
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
    """Remember when each was first seen as an orphan; a restart does not reset it.

    A time in the future, by a clock that was wrong, is corrected to now.
    """
    rows = [
        {
            "key": key,
            "workspace_id": UUID(_name(key).workspace_id),
            "archive_op_id": UUID(_name(key).archive_op_id),
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
    """Something needs these again: their grace starts anew should they be orphaned once more."""
    if keys:
        await session.execute(
            update(Archive)
            .where(Archive.key.in_(keys), Archive.orphan_since.is_not(None))
            .values(orphan_since=None)
        )


async def mark_collected(session: AsyncSession, key: str, now: datetime) -> None:
    """Said before the object goes: whoever wants to come back to it finds this first."""
    await session.execute(update(Archive).where(Archive.key == key).values(deleted_at=now))


async def is_collected(session: AsyncSession, key: str) -> bool:
    """Whether the collector has said that it removes this one; ask under the lock of its workspace's row."""
    said = await session.scalar(select(Archive.deleted_at).where(Archive.key == key))
    return said is not None


async def is_available(session: AsyncSession, key: str) -> bool:
    """Whether this archive was committed and is not being collected; ask under the lock of its workspace."""
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
    """Keep every archive but the chosen one until the workspace is deleted; call it under its row's lock."""
    if current is not None:
        await _remember(session, current, now)
    there = (Archive.workspace_id == UUID(workspace_id), Archive.deleted_at.is_(None))
    await session.execute(
        update(Archive)
        .where(*there, Archive.key != (chosen or ""), Archive.given_up_at.is_(None))
        .values(given_up_at=now, orphan_since=None)
    )
    await session.execute(
        update(Archive)
        .where(*there, Archive.key == (chosen or ""))
        .values(given_up_at=None, orphan_since=None)
    )


async def load_parked_archives(session: AsyncSession) -> AsyncIterator[ParkedArchive]:
    """Every archive that is some workspace's only copy, a page at a time."""
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


async def _remember(session: AsyncSession, key: str, now: datetime) -> None:
    """Have a row for an archive of an installation from before there were any."""
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


def _name(key: str) -> ArchiveName:
    name = parse_archive_key(key)
    if name is None:
        raise ValueError(f"not an archive's key: {key!r}")
    return name
