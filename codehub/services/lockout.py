"""Counts wrong passwords and locks out their source; codehub/domain/lockout.py has the rules."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.addresses import address_group
from codehub.db.session import Database
from codehub.db.sign_in_failures import (
    find_places,
    forget_failures,
    load_failures,
    lock_failures,
    remember_places,
    store_failures,
)
from codehub.domain.lockout import PLACE, Failures, Place, Throttle, add_failure, remaining_lock
from codehub.services.errors import LockedOut

# How long an account remembers an address or a device from which it has signed in.
ADDRESS_KNOWN = timedelta(days=30)
DEVICE_KNOWN = timedelta(days=180)
# Groups the attempts of clients whose address is not known.
UNKNOWN_ADDRESS = "unknown"

Throttles = Mapping[str, Throttle]


async def find_place(
    database: Database,
    user_id: UUID | None,
    account: str,
    address: str | None,
    device: str | None,
    *,
    now: datetime,
) -> Place:
    """Return where an attempt comes from, with the same queries for known and unknown users."""
    network = address_group(address or UNKNOWN_ADDRESS)
    by_address, by_device = address_place(address), device_place(device or "")
    async with database.transaction() as session:
        recent = await find_places(session, user_id or uuid4(), [by_address], now - ADDRESS_KNOWN)
        known = await find_places(session, user_id or uuid4(), [by_device], now - DEVICE_KNOWN)
    known_device = by_device.hex() if device and by_device in known else None
    return Place(account.lower(), network, known_device, by_address in recent)


async def remember_place(
    session: AsyncSession, user_id: UUID, address: str | None, device: str | None, now: datetime
) -> None:
    """Remember the place that the user has signed in from."""
    places = [address_place(address), *([device_place(device)] if device else [])]
    await remember_places(session, user_id, places, now)


async def refuse_while_locked(database: Database, throttles: Throttles, now: datetime) -> None:
    """Raise LockedOut before any password is checked."""
    async with database.transaction() as session:
        failures = await load_failures(session, [hash_key(each) for each in throttles])
    if (left := longest_lock(failures, now)) is not None:
        raise LockedOut(left)


async def lock_throttles(session: AsyncSession, throttles: Throttles, now: datetime) -> dict[bytes, Failures]:
    return await lock_failures(session, [hash_key(each) for each in throttles], now)


async def count_failure(
    session: AsyncSession,
    throttles: Throttles,
    before: Mapping[bytes, Failures],
    user_id: UUID | None,
    now: datetime,
) -> dict[str, Failures]:
    """Count a failure for every throttle; return the new counts by key."""
    after = {key: add_failure(before[hash_key(key)], now, throttle) for key, throttle in throttles.items()}
    await store_failures(session, {hash_key(key): each for key, each in after.items()}, user_id, now)
    return after


async def forgive(session: AsyncSession, throttles: Throttles) -> None:
    """Forget the failures of this place after a success, but not those of others."""
    await forget_failures(
        session, [hash_key(key) for key, throttle in throttles.items() if throttle is PLACE]
    )


def longest_lock(failures: Mapping[bytes, Failures], now: datetime) -> timedelta | None:
    locks = [left for each in failures.values() if (left := remaining_lock(each, now)) is not None]
    return max(locks, default=None)


def hash_key(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


def address_place(address: str | None) -> bytes:
    return hash_key(f"address {address_group(address or UNKNOWN_ADDRESS)}")


def device_place(device: str) -> bytes:
    return hash_key(f"device {device}")
