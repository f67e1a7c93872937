"""A user's own sessions: where they are signed in, and how to end that."""

from datetime import datetime
from uuid import UUID

from codehub.db.credentials import SessionView, revoke_sessions, sessions_of
from codehub.db.session import Database
from codehub.services.errors import CredentialNotFound

__all__ = ["SessionView", "list_sessions", "revoke_session"]


async def list_sessions(database: Database, user_id: UUID, *, now: datetime) -> list[SessionView]:
    """Those that can be used, newest first."""
    async with database.transaction() as session:
        return await sessions_of(session, user_id, now)


async def revoke_session(database: Database, user_id: UUID, session_id: UUID, *, now: datetime) -> None:
    """End it, or raise CredentialNotFound if it is not theirs or has ended."""
    async with database.transaction() as session:
        if not await revoke_sessions(session, now, user_id=user_id, session_id=session_id):
            raise CredentialNotFound
