"""Rows of sign-ins in progress at the identity provider, and of the identities of accounts."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import OidcAttempt, OidcIdentity


@dataclass(frozen=True)
class Attempt:
    """A sign-in in progress."""

    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    next_path: str
    fresh: bool
    expires_at: datetime


async def insert_attempt(
    session: AsyncSession, attempt: Attempt, *, state_hash: bytes, browser_hash: bytes
) -> None:
    await session.execute(
        insert(OidcAttempt).values(
            state_hash=state_hash,
            browser_hash=browser_hash,
            nonce=attempt.nonce,
            verifier=attempt.verifier,
            next_path=attempt.next_path,
            fresh=attempt.fresh,
            expires_at=attempt.expires_at,
        )
    )


async def take_attempt(
    session: AsyncSession, *, state_hash: bytes, browser_hash: bytes, now: datetime
) -> Attempt | None:
    """Delete and return the sign-in of this state and browser; None if there is none or it has expired."""
    found = await session.execute(
        delete(OidcAttempt)
        .where(
            OidcAttempt.state_hash == state_hash,
            OidcAttempt.browser_hash == browser_hash,
            OidcAttempt.expires_at > now,
        )
        .returning(
            OidcAttempt.nonce,
            OidcAttempt.verifier,
            OidcAttempt.next_path,
            OidcAttempt.fresh,
            OidcAttempt.expires_at,
        )
    )
    row = found.one_or_none()
    return Attempt(*row) if row else None


async def delete_expired_attempts(session: AsyncSession, now: datetime) -> None:
    await session.execute(delete(OidcAttempt).where(OidcAttempt.expires_at <= now))


async def lock_identity(session: AsyncSession, issuer: str, subject: str) -> None:
    """Serialize sign-ins of one identity, so that only the first one creates an account."""
    key = func.hashtextextended(f"{issuer} {subject}", 0)
    await session.execute(select(func.pg_advisory_xact_lock(key)))


async def find_identity(session: AsyncSession, issuer: str, subject: str) -> UUID | None:
    """Return the user of this identity."""
    statement = select(OidcIdentity.user_id).where(
        OidcIdentity.issuer == issuer, OidcIdentity.subject == subject
    )
    return await session.scalar(statement)


async def record_identity(
    session: AsyncSession, issuer: str, subject: str, user_id: UUID, now: datetime
) -> None:
    """Link the identity to the user, or record another sign-in; an existing link never changes."""
    statement = insert(OidcIdentity).values(
        issuer=issuer, subject=subject, user_id=user_id, created_at=now, signed_in_at=now
    )
    await session.execute(
        statement.on_conflict_do_update(
            index_elements=[OidcIdentity.issuer, OidcIdentity.subject],
            set_={"signed_in_at": statement.excluded.signed_in_at},
            where=OidcIdentity.user_id == statement.excluded.user_id,
        )
    )
