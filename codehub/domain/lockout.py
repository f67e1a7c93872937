"""Decides who is locked out after wrong passwords, and for how long.

A lock must slow down an attacker without keeping out the owner of the account. So failures are counted by the
place that they come from; the sum for an account slows down only places unknown to the account.
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
class Throttle:
    """How many failures are allowed before a lock, and how long until one of them is forgotten."""

    free: int
    forgets_one_every: timedelta


# One account from one address, or from one known device.
PLACE = Throttle(FAILURES_BEFORE_LOCK, MAX_LOCK)
# All accounts from one address, which a whole office may share.
ADDRESS = Throttle(30, timedelta(minutes=2))
# One account from all places unknown to it.
ACCOUNT = Throttle(20, timedelta(minutes=15))


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
    """The number of wrong passwords, the time of the last one, and when the lock ends."""

    count: int = 0
    locked_until: datetime | None = None
    failed_at: datetime | None = None


def throttles_of(place: Place) -> Mapping[str, Throttle]:
    """Return the throttles that apply, by the key of their failure counts.

    A known device has its own count, so nobody else can lock it out. A known address is not slowed down by
    failures elsewhere.
    """
    if place.known_device is not None:
        return {f"device {place.known_device} {place.account}": PLACE}
    throttles = {f"place {place.address} {place.account}": PLACE, f"address {place.address}": ADDRESS}
    if not place.is_known_address:
        throttles[account_key(place.account)] = ACCOUNT
    return throttles


def account_key(account: str) -> str:
    return f"account {account}"


def lock_duration(count: int, throttle: Throttle = PLACE) -> timedelta | None:
    """Return how long the n-th failure locks, or None if it does not."""
    if count < throttle.free:
        return None
    doublings = min(count - throttle.free, MAX_DOUBLINGS)
    return min(FIRST_LOCK * (1 << doublings), MAX_LOCK)


def add_failure(failures: Failures, now: datetime, throttle: Throttle = PLACE) -> Failures:
    count = remembered(failures, now, throttle) + 1
    lock = lock_duration(count, throttle)
    return Failures(count, None if lock is None else now + lock, now)


def remembered(failures: Failures, now: datetime, throttle: Throttle) -> int:
    """Return how many failures still count."""
    if failures.failed_at is None:
        return failures.count
    return max(0, failures.count - max(0, (now - failures.failed_at) // throttle.forgets_one_every))


def remaining_lock(failures: Failures, now: datetime) -> timedelta | None:
    """Return how long the lock still lasts, or None."""
    if failures.locked_until is None or failures.locked_until <= now:
        return None
    return failures.locked_until - now
