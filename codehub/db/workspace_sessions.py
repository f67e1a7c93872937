"""Rows of sessions on the origins of workspaces, found by the hash of the ticket or of the token."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Integer, delete, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Session, Workspace, WorkspaceSession
from codehub.domain.conditions import WorkspaceId


class EnteredSession(NamedTuple):
    """The parent session, and the workspace or port that this session is limited to."""

    session_token_hash: bytes
    workspace_id: WorkspaceId
    port: int | None


async def insert_ticket(
    session: AsyncSession,
    session_id: UUID,
    workspace_id: WorkspaceId,
    ticket_hash: bytes,
    *,
    port: int | None = None,
    now: datetime,
    expires_at: datetime,
) -> bool:
    """Store a ticket, and remove expired ones; return False if the session or the workspace is gone."""
    unused = WorkspaceSession.token_hash.is_(None) & (WorkspaceSession.ticket_expires_at <= now)
    await session.execute(delete(WorkspaceSession).where(WorkspaceSession.session_id == session_id, unused))
    wanted = select(
        literal(ticket_hash), literal(expires_at), Session.id, Workspace.id, literal(port, Integer)
    )
    values = wanted.join(Workspace, Workspace.id == UUID(workspace_id)).where(Session.id == session_id)
    columns = ["ticket_hash", "ticket_expires_at", "session_id", "workspace_id", "port"]
    statement = insert(WorkspaceSession).from_select(columns, values)
    added = await session.execute(statement.returning(WorkspaceSession.session_id))
    return added.one_or_none() is not None


async def use_ticket(
    session: AsyncSession,
    ticket_hash: bytes,
    workspace_id: WorkspaceId,
    token_hash: bytes,
    now: datetime,
    *,
    port: int | None = None,
) -> bool:
    """Set the session's token; return False if the ticket is unknown, used, expired or for another origin."""
    statement = (
        update(WorkspaceSession)
        .where(
            WorkspaceSession.ticket_hash == ticket_hash,
            WorkspaceSession.workspace_id == UUID(workspace_id),
            WorkspaceSession.port.is_not_distinct_from(port),
            WorkspaceSession.token_hash.is_(None),
            WorkspaceSession.ticket_expires_at > now,
        )
        .values(token_hash=token_hash)
        .returning(WorkspaceSession.session_id)
    )
    return (await session.execute(statement)).one_or_none() is not None


async def find_entered_session(session: AsyncSession, token_hash: bytes) -> EnteredSession | None:
    statement = (
        select(Session.token_hash, WorkspaceSession.workspace_id, WorkspaceSession.port)
        .join(Session, Session.id == WorkspaceSession.session_id)
        .where(WorkspaceSession.token_hash == token_hash)
    )
    row = (await session.execute(statement)).one_or_none()
    return EnteredSession(row[0], WorkspaceId(str(row[1])), row[2]) if row else None
