"""Wrong passwords lock a user name, longer each time."""

from datetime import datetime, timedelta

import pytest

from codehub.domain.lockout import Failures, add_failure, lock_duration, remaining_lock
from tests.unit.domain.builders import NOW


@pytest.mark.parametrize(
    ("count", "seconds"),
    [
        (0, None),
        (4, None),
        (5, 30),
        (6, 60),
        (7, 120),
        (8, 240),
        (9, 480),
        (10, 960),
        (11, 1800),
        (12, 1800),
        (1_000_000_000, 1800),
    ],
)
def test_the_fifth_failure_locks_and_each_further_one_twice_as_long(count: int, seconds: int | None) -> None:
    assert lock_duration(count) == (None if seconds is None else timedelta(seconds=seconds))


def test_failures_are_counted_one_by_one() -> None:
    failures, history = Failures(), []
    for _ in range(6):
        failures = add_failure(failures, NOW)
        history.append(failures)
    assert [each.count for each in history] == [1, 2, 3, 4, 5, 6]
    assert [each.locked_until for each in history[:4]] == [None] * 4
    assert history[4].locked_until == NOW + timedelta(seconds=30)
    assert history[5].locked_until == NOW + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("locked_until", "left"),
    [
        (None, None),
        (NOW - timedelta(seconds=1), None),
        (NOW, None),
        (NOW + timedelta(seconds=1), timedelta(seconds=1)),
    ],
)
def test_a_lock_ends_by_itself(locked_until: datetime | None, left: timedelta | None) -> None:
    assert remaining_lock(Failures(5, locked_until), NOW) == left
