"""Wrong passwords lock a user name, longer each time."""

from datetime import datetime, timedelta

import pytest

from codehub.domain.lockout import (
    ACCOUNT,
    ADDRESS,
    PLACE,
    Failures,
    Place,
    Throttle,
    add_failure,
    lock_duration,
    remaining_lock,
    remembered,
    throttles_of,
)
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


@pytest.mark.parametrize("throttle", [PLACE, ADDRESS, ACCOUNT])
def test_every_throttle_locks_after_its_free_failures_and_doubles(throttle: Throttle) -> None:
    assert lock_duration(throttle.free - 1, throttle) is None
    assert lock_duration(throttle.free, throttle) == timedelta(seconds=30)
    assert lock_duration(throttle.free + 1, throttle) == timedelta(seconds=60)


@pytest.mark.parametrize(
    ("place", "throttles"),
    [
        (Place("ann", "a"), {PLACE, ADDRESS, ACCOUNT}),
        (Place("ann", "a", is_known_address=True), {PLACE, ADDRESS}),
        (Place("ann", "a", known_device="d"), {PLACE}),
        (Place("ann", "a", known_device="d", is_known_address=True), {PLACE}),
    ],
)
def test_what_strangers_do_elsewhere_slows_down_only_unknown_places(
    place: Place, throttles: set[Throttle]
) -> None:
    assert set(throttles_of(place).values()) == throttles


def test_a_known_device_shares_its_count_with_nobody() -> None:
    device = set(throttles_of(Place("ann", "a", known_device="d")))
    others = [Place("ann", "a"), Place("ann", "a", known_device="e"), Place("bob", "a", known_device="d")]
    assert all(device.isdisjoint(throttles_of(other)) for other in others)


def test_failures_are_forgotten_one_by_one() -> None:
    failures = Failures(5, None, NOW)
    spans = [timedelta(0), PLACE.forgets_one_every, PLACE.forgets_one_every * 4.5, timedelta(days=1)]
    assert [remembered(failures, NOW + span, PLACE) for span in spans] == [5, 4, 1, 0]
    # The clock of another machine may be behind.
    assert remembered(failures, NOW - timedelta(days=1), PLACE) == 5
    assert remembered(Failures(), NOW, PLACE) == 0


def test_guessing_as_fast_as_allowed_ends_at_the_longest_lock() -> None:
    failures, now, guesses = Failures(), NOW, 0
    while now < NOW + timedelta(days=1):
        failures, guesses = add_failure(failures, now), guesses + 1
        now = failures.locked_until or now
    assert guesses < 60
