"""Rows of authenticator apps and recovery codes: the second factor of local accounts."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Authenticator, RecoveryCode


@dataclass(frozen=True)
class AuthenticatorRow:
    """The authenticator app of a user; until `enabled_at` is set, sign-ins do not ask for it."""

    secret: str = field(repr=False)
    enabled_at: datetime | None
    last_step: int | None


async def lock_authenticator(session: AsyncSession, user_id: UUID) -> AuthenticatorRow | None:
    """Return the row and lock it, so that a code sent twice is accepted only once."""
    found = await session.execute(_select(user_id).with_for_update())
    row = found.one_or_none()
    return AuthenticatorRow(*row) if row else None


async def load_authenticator(session: AsyncSession, user_id: UUID) -> AuthenticatorRow | None:
    found = await session.execute(_select(user_id))
    row = found.one_or_none()
    return AuthenticatorRow(*row) if row else None


async def replace_authenticator(session: AsyncSession, user_id: UUID, secret: str, now: datetime) -> None:
    """Store a secret that is not enabled yet; remove the previous app and its recovery codes."""
    await delete_authenticator(session, user_id)
    await session.execute(insert(Authenticator).values(user_id=user_id, secret=secret, created_at=now))


async def enable_authenticator(session: AsyncSession, user_id: UUID, now: datetime) -> None:
    await session.execute(
        update(Authenticator).where(Authenticator.user_id == user_id).values(enabled_at=now)
    )


async def use_step(session: AsyncSession, user_id: UUID, step: int) -> None:
    await session.execute(
        update(Authenticator).where(Authenticator.user_id == user_id).values(last_step=step)
    )


async def delete_authenticator(session: AsyncSession, user_id: UUID) -> bool:
    """Remove the app and the recovery codes; return whether an enabled app was removed."""
    await session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    removed = await session.execute(
        delete(Authenticator).where(Authenticator.user_id == user_id).returning(Authenticator.enabled_at)
    )
    return removed.scalar_one_or_none() is not None


async def replace_recovery_codes(session: AsyncSession, user_id: UUID, hashes: Collection[bytes]) -> None:
    await session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    await session.execute(insert(RecoveryCode), [{"user_id": user_id, "code_hash": each} for each in hashes])


async def use_recovery_code(session: AsyncSession, user_id: UUID, code_hash: bytes) -> bool:
    """Delete the code; return whether it existed."""
    used = await session.execute(
        delete(RecoveryCode)
        .where(RecoveryCode.user_id == user_id, RecoveryCode.code_hash == code_hash)
        .returning(RecoveryCode.user_id)
    )
    return used.one_or_none() is not None


async def count_recovery_codes(session: AsyncSession, user_id: UUID) -> int:
    return (await session.scalars(select(func.count()).where(RecoveryCode.user_id == user_id))).one()


def _select(user_id: UUID) -> Select[str, datetime | None, int | None]:
    columns = (Authenticator.secret, Authenticator.enabled_at, Authenticator.last_step)
    return select(*columns).where(Authenticator.user_id == user_id)
