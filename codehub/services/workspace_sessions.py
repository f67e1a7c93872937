"""Sessions on the origins of workspaces, opened by a ticket from the main origin; see ADR 0037."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from codehub.db.credentials import use_session
from codehub.db.session import Database
from codehub.db.workspace_sessions import find_entered_session, insert_ticket, use_ticket
from codehub.domain.conditions import WorkspaceId
from codehub.services.credentials import hash_token, new_session_token
from codehub.services.identity import Caller, Credential, caller_of

# Short, because browsers follow the redirect with the ticket at once.
TICKET_LIFETIME = timedelta(seconds=30)


@dataclass(frozen=True)
class Entered:
    """The user of a workspace's cookie, and the one workspace or port that it opens."""

    caller: Caller
    workspace_id: WorkspaceId
    port: int | None = None

    @property
    def label(self) -> str:
        """Return the first label of the origin's host."""
        return self.workspace_id if self.port is None else f"{self.port}--{self.workspace_id}"


async def issue_ticket(
    database: Database, session_id: UUID, workspace_id: WorkspaceId, port: int | None = None, *, now: datetime
) -> str | None:
    """Return a single-use ticket for the origin of this workspace or port, for the user of the session.

    Return None if the session or the workspace no longer exists.
    """
    ticket = new_session_token()
    async with database.transaction() as session:
        stored = await insert_ticket(
            session,
            session_id,
            workspace_id,
            hash_token(ticket),
            port=port,
            now=now,
            expires_at=now + TICKET_LIFETIME,
        )
    return ticket if stored else None


async def redeem_ticket(
    database: Database, ticket: str, workspace_id: WorkspaceId, port: int | None = None, *, now: datetime
) -> str | None:
    """Return the token for the workspace's cookie; None if the ticket is invalid."""
    token = new_session_token()
    async with database.transaction() as session:
        used = await use_ticket(session, hash_token(ticket), workspace_id, hash_token(token), now, port=port)
    return token if used else None


async def find_workspace_session(database: Database, token: str, *, now: datetime) -> Entered | None:
    """Return the user of a workspace's cookie; None if its parent session has ended."""
    async with database.transaction() as session:
        entered = await find_entered_session(session, hash_token(token))
        if entered is None:
            return None
        holder = await use_session(session, entered.session_token_hash, now)
    caller = caller_of(holder, Credential.SESSION)
    return Entered(caller, entered.workspace_id, entered.port) if caller else None
