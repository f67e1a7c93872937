"""What a person may see of a workspace's archives."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Archive, Workspace
from codehub.domain.conditions import WorkspaceId


@dataclass(frozen=True)
class ArchiveView:
    """One archive; `current` is the one that the workspace would be restored from."""

    key: str
    archive_op_id: UUID
    size_bytes: int | None
    sha256: str | None
    created_at: datetime
    verified_at: datetime | None
    current: bool
    orphan_since: datetime | None
    removed_at: datetime | None


async def list_archives(session: AsyncSession, workspace_id: WorkspaceId) -> list[ArchiveView]:
    """Newest first; those that the collector has removed are in it, with the time."""
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
            Archive.deleted_at,
        )
        .outerjoin(Workspace, Workspace.id == Archive.workspace_id)
        .where(Archive.workspace_id == UUID(workspace_id))
        .order_by(Archive.created_at.desc(), Archive.key)
    )
    return [ArchiveView(*row) for row in await session.execute(statement)]


async def count_collected(session: AsyncSession) -> int:
    """How many archives the collector has removed, as far as they are still remembered."""
    statement = select(func.count()).select_from(Archive).where(Archive.deleted_at.is_not(None))
    return (await session.scalars(statement)).one()
