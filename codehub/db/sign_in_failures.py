"""Rows of wrong passwords, and of places that users have signed in from."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import KnownPlace, SignInFailure
from codehub.domain.lockout import Failures

# By then no failure counts any more.
KEPT = timedelta(days=2)
PLACES_KEPT = timedelta(days=180)


async def load_failures(
    session: AsyncSession, keys: Collection[bytes], *, lock: bool = False
) -> dict[bytes, Failures]:
    """Return the failures by key; `lock` locks their rows."""
    columns = (
        SignInFailure.key,
        SignInFailure.count,
        SignInFailure.locked_until,
        SignInFailure.failed_at,
    )
    # Always in the same order, to avoid deadlocks.
    found = select(*columns).where(SignInFailure.key.in_(keys)).order_by(SignInFailure.key)
    rows = await session.execute(found.with_for_update() if lock else found)
    return dict.fromkeys(keys, Failures()) | {row.key: Failures(*row[1:]) for row in rows}


async def lock_failures(
    session: AsyncSession, keys: Collection[bytes], now: datetime
) -> dict[bytes, Failures]:
    """Return the failures by key and lock their rows; insert missing rows first."""
    rows = [{"key": key, "count": 0, "failed_at": now} for key in sorted(keys)]
    await session.execute(insert(SignInFailure).values(rows).on_conflict_do_nothing())
    return await load_failures(session, keys, lock=True)


async def store_failures(
    session: AsyncSession, failures: Mapping[bytes, Failures], user_id: UUID | None, now: datetime
) -> None:
    for key, each in sorted(failures.items()):
        values = {
            "count": each.count,
            "locked_until": each.locked_until,
            "failed_at": now,
            "user_id": user_id,
        }
        statement = insert(SignInFailure).values(key=key, **values)
        await session.execute(statement.on_conflict_do_update(index_elements=["key"], set_=values))
    await session.execute(delete(SignInFailure).where(SignInFailure.failed_at < now - KEPT))


async def forget_failures(session: AsyncSession, keys: Collection[bytes]) -> None:
    await session.execute(delete(SignInFailure).where(SignInFailure.key.in_(keys)))


async def forget_failures_of(session: AsyncSession, user_id: UUID) -> None:
    await session.execute(delete(SignInFailure).where(SignInFailure.user_id == user_id))


async def find_places(
    session: AsyncSession, user_id: UUID, places: Collection[bytes], since: datetime
) -> set[bytes]:
    """Return those of the places that the user has signed in from since then."""
    known = select(KnownPlace.place).where(
        KnownPlace.user_id == user_id, KnownPlace.place.in_(places), KnownPlace.seen_at >= since
    )
    return set(await session.scalars(known))


async def remember_places(
    session: AsyncSession, user_id: UUID, places: Collection[bytes], now: datetime
) -> None:
    rows = [{"user_id": user_id, "place": place, "seen_at": now} for place in sorted(places)]
    statement = insert(KnownPlace).values(rows)
    await session.execute(
        statement.on_conflict_do_update(index_elements=["user_id", "place"], set_={"seen_at": now})
    )
    old = KnownPlace.seen_at < now - PLACES_KEPT
    await session.execute(delete(KnownPlace).where(KnownPlace.user_id == user_id, old))


async def forget_places(session: AsyncSession, user_id: UUID) -> None:
    await session.execute(delete(KnownPlace).where(KnownPlace.user_id == user_id))
