"""Delays before a crashed child is restarted."""

import pytest

from codehub.embedded.supervisor import (
    CRASH_LOOP_CRASHES,
    SLOW_DELAY_SECONDS,
    STABLE_SECONDS,
    count_crashes,
    is_crash_loop,
    restart_delay,
)


def test_delays_double_and_then_stay_constant() -> None:
    delays = [restart_delay(crashes) for crashes in range(1, 9)]
    assert delays == [0.25, 0.5, 1, 2, 4, SLOW_DELAY_SECONDS, SLOW_DELAY_SECONDS, SLOW_DELAY_SECONDS]


def test_quick_crashes_are_counted() -> None:
    assert count_crashes(2, ran_seconds=STABLE_SECONDS - 1) == 3


def test_a_child_that_ran_long_enough_starts_over() -> None:
    assert count_crashes(5, ran_seconds=STABLE_SECONDS) == 1


@pytest.mark.parametrize(("crashes", "loop"), [(CRASH_LOOP_CRASHES - 1, False), (CRASH_LOOP_CRASHES, True)])
def test_too_many_crashes_are_a_crash_loop(crashes: int, loop: bool) -> None:
    assert is_crash_loop(crashes) is loop
