"""The keys of requests that may be repeated, and what each request has made."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import TextClause, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import IdempotencyKey
from codehub.domain.conditions import WorkspaceId

# By where the rows lie: to look them up by their names once more, the database would read the whole table.
_FORGET = text("""
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotency_keys WHERE created_at < :before
        ORDER BY created_at LIMIT :limit FOR UPDATE SKIP LOCKED
    ))
""")


@dataclass(frozen=True)
class FirstRequest:
    """What came with a key at first, and the workspace that it made."""

    request_hash: bytes
    workspace_id: WorkspaceId


async def store_key(
    session: AsyncSession,
    user_id: UUID,
    key: str,
    first: FirstRequest,
    *,
    now: datetime,
    expired_before: datetime,
) -> FirstRequest | None:
    """Store the key; if it is taken already, tell by what.

    Of several at once one stores it, and the others wait here until that one has committed or given up.
    """
    inserted = insert(IdempotencyKey).values(
        user_id=user_id,
        key=key,
        request_hash=first.request_hash,
        workspace_id=UUID(first.workspace_id),
        created_at=now,
    )
    news = inserted.excluded
    statement = inserted.on_conflict_do_update(
        index_elements=[IdempotencyKey.user_id, IdempotencyKey.key],
        set_={
            "request_hash": news.request_hash,
            "workspace_id": news.workspace_id,
            "created_at": news.created_at,
        },
        where=IdempotencyKey.created_at < expired_before,
    )
    if await session.scalar(statement.returning(IdempotencyKey.key)) is not None:
        return None
    known = select(IdempotencyKey.request_hash, IdempotencyKey.workspace_id).where(
        IdempotencyKey.user_id == user_id, IdempotencyKey.key == key
    )
    row = (await session.execute(known)).one()
    return FirstRequest(row[0], WorkspaceId(str(row[1])))


async def delete_expired_keys(session: AsyncSession, before: datetime, limit: int) -> None:
    """Remove some that are older; a key that somebody else holds is left to them, so nobody waits."""
    await session.execute(delete_expired(before, limit))


def delete_expired(before: datetime, limit: int) -> TextClause:
    return _FORGET.bindparams(before=before, limit=limit)
