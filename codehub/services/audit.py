"""The audit log: sign-ins, tokens, and changes to accounts and administration."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.audit_log import NewEntry, insert_entry


class Action(StrEnum):
    """What was done or attempted; codehub/words.py has the labels for people."""

    SIGN_IN = "sign_in"
    SIGN_OUT = "sign_out"
    LOCKOUT = "lockout"
    PASSWORD_CONFIRM = "password_confirm"  # noqa: S105
    PASSWORD_CHANGE = "password_change"  # noqa: S105
    TOKEN_CREATE = "token_create"  # noqa: S105
    TOKEN_REVOKE = "token_revoke"  # noqa: S105
    SESSION_REVOKE = "session_revoke"
    SIGN_OUT_EVERYWHERE = "sign_out_everywhere"
    AUTHENTICATOR_ADD = "authenticator_add"
    AUTHENTICATOR_REMOVE = "authenticator_remove"
    USER_ADD = "user_add"
    USER_ROLE = "user_role"
    USER_DISABLE = "user_disable"
    USER_ENABLE = "user_enable"
    USER_PASSWORD = "user_password"  # noqa: S105
    USER_AUTHENTICATOR = "user_authenticator"
    RECOVER = "recover"
    NETWORK_POLICY = "network_policy"
    NETWORK_LIMIT = "network_limit"
    DISK_LIMIT = "disk_limit"
    PORT_SHARE = "port_share"
    PORT_UNSHARE = "port_unshare"


class Outcome(StrEnum):
    """Whether it succeeded."""

    SUCCESS = "success"
    FAILURE = "failure"


@dataclass(frozen=True)
class Actor:
    """Who acts, and from which address. Without an id: a program, or someone on the server."""

    name: str
    user_id: UUID | None = None
    address: str | None = None


SYSTEM = Actor("codehub")
# Someone who is not authenticated.
UNKNOWN = "unknown"


async def record(
    session: AsyncSession,
    action: Action,
    now: datetime,
    *,
    by: Actor,
    target: str | None = None,
    target_id: UUID | str | None = None,
    outcome: Outcome = Outcome.SUCCESS,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Add an entry in the transaction that makes the change. Never pass secrets or unauthenticated input."""
    entry = NewEntry(
        at=now,
        action=action,
        outcome=outcome,
        actor=by.name,
        actor_id=by.user_id,
        address=by.address,
        target=target,
        target_id=None if target_id is None else str(target_id),
        detail=detail or {},
    )
    await insert_entry(session, entry)
