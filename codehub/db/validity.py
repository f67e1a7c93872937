"""Which of many sessions and tokens still stand for their users."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.credentials import live_session, live_token
from codehub.db.models import ApiToken, Session, User


async def find_valid(session: AsyncSession, ids: Collection[str], now: datetime) -> set[str]:
    """Those that are neither expired nor revoked and whose user is not disabled; one query for all."""
    wanted = [UUID(each) for each in ids]
    sessions = select(Session.id).join(User, User.id == Session.user_id).where(User.disabled_at.is_(None))
    tokens = select(ApiToken.id).join(User, User.id == ApiToken.user_id).where(User.disabled_at.is_(None))
    found = await session.scalars(
        union_all(
            sessions.where(Session.id.in_(wanted), *live_session(now)),
            tokens.where(ApiToken.id.in_(wanted), *live_token(now)),
        )
    )
    return {str(each) for each in found}
