"""How long a user name is locked after too many wrong passwords in a row."""

from dataclasses import dataclass
from datetime import datetime, timedelta

FAILURES_BEFORE_LOCK = 5
FIRST_LOCK = timedelta(seconds=30)
MAX_LOCK = timedelta(minutes=30)
# More than it takes to reach the longest lock; keeps the number small after any number of failures.
MAX_DOUBLINGS = 16


@dataclass(frozen=True)
class Failures:
    """Wrong passwords in a row, and until when no further attempt is checked."""

    count: int = 0
    locked_until: datetime | None = None


def lock_duration(count: int) -> timedelta | None:
    """Return how long the n-th failure locks the name, or None if it does not."""
    if count < FAILURES_BEFORE_LOCK:
        return None
    doublings = min(count - FAILURES_BEFORE_LOCK, MAX_DOUBLINGS)
    return min(FIRST_LOCK * (1 << doublings), MAX_LOCK)


def add_failure(failures: Failures, now: datetime) -> Failures:
    count = failures.count + 1
    lock = lock_duration(count)
    return Failures(count, None if lock is None else now + lock)


def remaining_lock(failures: Failures, now: datetime) -> timedelta | None:
    """Return how long the name is still locked, or None."""
    if failures.locked_until is None or failures.locked_until <= now:
        return None
    return failures.locked_until - now
