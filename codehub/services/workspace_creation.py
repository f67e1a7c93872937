"""Creating a workspace once, also where the request for it is repeated."""

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.idempotency import FirstRequest, forget_keys, take_key
from codehub.db.session import Database
from codehub.db.workspaces import NewWorkspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.services.errors import IdempotencyConflict
from codehub.services.workspaces import add_workspace

KEPT_FOR = timedelta(hours=24)
# More than one for each that is added, so that they do not pile up; few enough to be quick.
FORGET_AT_ONCE = 100


async def create_once(
    database: Database,
    new: NewWorkspace,
    *,
    idempotency_key: str | None,
    request_hash: bytes,
    actor: str,
    limits: RunningLimits,
    now: datetime,
) -> WorkspaceId:
    """Add a workspace and tell its id; the owner's same request with the same key gets the first one's."""
    async with database.transaction() as session:
        if idempotency_key is not None:
            earlier = await _earlier(session, new, idempotency_key, request_hash, now)
            if earlier is not None:
                return earlier
        await add_workspace(session, new, actor=actor, limits=limits, now=now)
    return new.workspace_id


async def _earlier(
    session: AsyncSession, new: NewWorkspace, key: str, request_hash: bytes, now: datetime
) -> WorkspaceId | None:
    """What the same request has made; the key is stored with the workspace or, if that is refused, not."""
    mine = FirstRequest(request_hash, new.workspace_id)
    forget_before = now - KEPT_FOR
    first = await take_key(session, new.owner_user_id, key, mine, now=now, forget_before=forget_before)
    if first is None:
        await forget_keys(session, forget_before, FORGET_AT_ONCE)
        return None
    if first.request_hash != request_hash:
        raise IdempotencyConflict
    return first.workspace_id
