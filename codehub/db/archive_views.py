"""Archives as people see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ScalarSelect, func, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from codehub.db.models import Archive, Workspace
from codehub.domain.conditions import WorkspaceId

# People choose from the newest ones.
MAX_OTHERS = 20


@dataclass(frozen=True)
class ArchiveView:
    """One archive; the workspace is restored from the `current` one."""

    key: str
    archive_op_id: UUID
    size_bytes: int | None
    sha256: str | None
    created_at: datetime
    verified_at: datetime | None
    current: bool
    orphan_since: datetime | None
    given_up_at: datetime | None
    removed_at: datetime | None


@dataclass(frozen=True)
class OtherArchive:
    """An archive that a recovery may choose instead of the current one."""

    archive_op_id: UUID
    key: str
    created_at: datetime
    size_bytes: int | None
    verified_at: datetime | None


def select_other_archives() -> ScalarSelect[Any]:
    """Return a column for queries of workspaces: all archives but the current one, newest first, as JSON."""
    archive = aliased(Archive)
    fields = {
        "archive_op_id": archive.archive_op_id,
        "key": archive.key,
        "created_at": archive.created_at,
        "size_bytes": archive.size_bytes,
        "verified_at": archive.verified_at,
    }
    # Without a checksum, it is not known to be committed.
    newest = (
        select(*fields.values())
        .where(
            archive.workspace_id == Workspace.id,
            archive.key != func.coalesce(Workspace.archive_key, ""),
            archive.sha256.is_not(None),
            archive.deleted_at.is_(None),
        )
        .order_by(archive.created_at.desc(), archive.key)
        .limit(MAX_OTHERS)
        .correlate(Workspace)
        .subquery()
    )
    pairs = (part for name in fields for part in (name, newest.c[name]))
    return select(func.jsonb_agg(func.jsonb_build_object(*pairs), type_=JSONB)).scalar_subquery()


async def list_other_archives(session: AsyncSession, workspace_id: WorkspaceId) -> tuple[OtherArchive, ...]:
    """Return the archives that a recovery may choose instead of the current one, newest first."""
    statement = (
        select(select_other_archives()).select_from(Workspace).where(Workspace.id == UUID(workspace_id))
    )
    return parse_other_archives(await session.scalar(statement))


def parse_other_archives(document: Sequence[Mapping[str, Any]] | None) -> tuple[OtherArchive, ...]:
    return tuple(
        OtherArchive(
            archive_op_id=UUID(each["archive_op_id"]),
            key=each["key"],
            created_at=datetime.fromisoformat(each["created_at"]),
            size_bytes=each["size_bytes"],
            verified_at=datetime.fromisoformat(each["verified_at"]) if each["verified_at"] else None,
        )
        for each in document or ()
    )


async def list_archives(session: AsyncSession, workspace_id: WorkspaceId) -> list[ArchiveView]:
    """Return all archives, newest first; collected ones have `removed_at`."""
    statement = (
        select(
            Archive.key,
            Archive.archive_op_id,
            Archive.size_bytes,
            Archive.sha256,
            Archive.created_at,
            Archive.verified_at,
            (Archive.key == func.coalesce(Workspace.archive_key, "")).label("current"),
            Archive.orphan_since,
            Archive.given_up_at,
            Archive.deleted_at.label("removed_at"),
        )
        .outerjoin(Workspace, Workspace.id == Archive.workspace_id)
        .where(Archive.workspace_id == UUID(workspace_id))
        .order_by(Archive.created_at.desc(), Archive.key)
    )
    return [ArchiveView(**row) for row in (await session.execute(statement)).mappings()]


async def count_collected(session: AsyncSession) -> int:
    """Count the archives that the collector has removed and whose rows still exist."""
    statement = select(func.count()).select_from(Archive).where(Archive.deleted_at.is_not(None))
    return (await session.scalars(statement)).one()
