"""Idempotency keys, and what the first request with each key created."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import TextClause, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import IdempotencyKey
from codehub.domain.conditions import WorkspaceId

# By ctid: looking the rows up by their primary key again would read the whole table.
_DELETE_EXPIRED = text("""
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotency_keys WHERE created_at < :before
        ORDER BY created_at LIMIT :limit FOR UPDATE SKIP LOCKED
    ))
""")


@dataclass(frozen=True)
class FirstRequest:
    """The first request with a key, and the workspace that it created."""

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
    """Store the key, or return the request that used it first.

    Of several concurrent calls one stores the key; the others wait until that transaction has ended.
    """
    inserted = insert(IdempotencyKey).values(
        user_id=user_id,
        key=key,
        request_hash=first.request_hash,
        workspace_id=UUID(first.workspace_id),
        created_at=now,
    )
    new = inserted.excluded
    statement = inserted.on_conflict_do_update(
        index_elements=[IdempotencyKey.user_id, IdempotencyKey.key],
        set_={
            "request_hash": new.request_hash,
            "workspace_id": new.workspace_id,
            "created_at": new.created_at,
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
    """Remove some expired keys; skip locked ones, so that no transaction waits for another."""
    await session.execute(delete_expired(before, limit))


def delete_expired(before: datetime, limit: int) -> TextClause:
    return _DELETE_EXPIRED.bindparams(before=before, limit=limit)
