"""How long nobody may try a name again after too many wrong passwords in a row."""

from dataclasses import dataclass
from datetime import datetime, timedelta

FAILURES_BEFORE_LOCK = 5
FIRST_LOCK = timedelta(seconds=30)
LONGEST_LOCK = timedelta(minutes=30)
# Far more than it takes to get to the longest; keeps the number small however many failures there were.
MOST_DOUBLINGS = 16


@dataclass(frozen=True)
class Failures:
    """Wrong passwords in a row, and until when no further one is looked at."""

    count: int = 0
    locked_until: datetime | None = None


def lock_duration(count: int) -> timedelta | None:
    """How long the failure with this number locks; None while there is another try."""
    if count < FAILURES_BEFORE_LOCK:
        return None
    doublings = min(count - FAILURES_BEFORE_LOCK, MOST_DOUBLINGS)
    return min(FIRST_LOCK * (1 << doublings), LONGEST_LOCK)


def add_failure(failures: Failures, now: datetime) -> Failures:
    count = failures.count + 1
    lock = lock_duration(count)
    return Failures(count, None if lock is None else now + lock)


def remaining_lock(failures: Failures, now: datetime) -> timedelta | None:
    """How long it is still locked; None if it is not."""
    if failures.locked_until is None or failures.locked_until <= now:
        return None
    return failures.locked_until - now
