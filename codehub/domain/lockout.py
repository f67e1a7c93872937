"""How long wrong passwords lock whom.

A lock must slow down whoever guesses, and must not keep out the owner of the account. So failures are
counted where they come from; their sum for an account slows down only places that the account does not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

FAILURES_BEFORE_LOCK = 5
FIRST_LOCK = timedelta(seconds=30)
MAX_LOCK = timedelta(minutes=30)
# More than it takes to reach the longest lock; keeps the number small after any number of failures.
MAX_DOUBLINGS = 16


@dataclass(frozen=True)
class Brake:
    """How many failures are free, and how long it takes until one of them is forgotten."""

    free: int
    forgets_one_every: timedelta


# One account from one address, or from one known device.
PLACE = Brake(FAILURES_BEFORE_LOCK, MAX_LOCK)
# All accounts from one address, which an office may share.
ADDRESS = Brake(30, timedelta(minutes=2))
# One account from all places that it does not know.
ACCOUNT = Brake(20, timedelta(minutes=15))


@dataclass(frozen=True)
class Place:
    """Where a password for an account comes from."""

    account: str
    address: str
    # The id of a device from which this account has signed in before.
    known_device: str | None = None
    # Whether this account has signed in from this address lately.
    is_known_address: bool = False


@dataclass(frozen=True)
class Failures:
    """Wrong passwords, the time of the last one, and until when no further attempt is checked."""

    count: int = 0
    locked_until: datetime | None = None
    failed_at: datetime | None = None


def brakes_of(place: Place) -> Mapping[str, Brake]:
    """Return the brakes that apply, by the key that their failures are counted under.

    A known device has a count of its own, so nobody else can lock it. A known address is not slowed down by
    what strangers do elsewhere.
    """
    if place.known_device is not None:
        return {f"device {place.known_device} {place.account}": PLACE}
    brakes = {f"place {place.address} {place.account}": PLACE, f"address {place.address}": ADDRESS}
    if not place.is_known_address:
        brakes[account_key(place.account)] = ACCOUNT
    return brakes


def account_key(account: str) -> str:
    return f"account {account}"


def lock_duration(count: int, brake: Brake = PLACE) -> timedelta | None:
    """Return how long the n-th failure locks, or None if it does not."""
    if count < brake.free:
        return None
    doublings = min(count - brake.free, MAX_DOUBLINGS)
    return min(FIRST_LOCK * (1 << doublings), MAX_LOCK)


def add_failure(failures: Failures, now: datetime, brake: Brake = PLACE) -> Failures:
    count = remembered(failures, now, brake) + 1
    lock = lock_duration(count, brake)
    return Failures(count, None if lock is None else now + lock, now)


def remembered(failures: Failures, now: datetime, brake: Brake) -> int:
    """Return how many failures still count."""
    if failures.failed_at is None:
        return failures.count
    return max(0, failures.count - max(0, (now - failures.failed_at) // brake.forgets_one_every))


def remaining_lock(failures: Failures, now: datetime) -> timedelta | None:
    """Return how long the lock still lasts, or None."""
    if failures.locked_until is None or failures.locked_until <= now:
        return None
    return failures.locked_until - now
