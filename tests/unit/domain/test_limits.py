"""Running limits and idle rules."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

import pytest

from codehub.domain.limits import (
    IdleTimes,
    LimitScope,
    RunningLimits,
    Usage,
    counts_as_running,
    disabled_target,
    exceeded_limit,
    idle_target,
    idle_times,
    next_idle_change,
)
from codehub.domain.states import DesiredState, Operation, Phase
from tests.unit.domain.builders import NOW

TIMES = IdleTimes(standby=timedelta(minutes=10), archive=timedelta(minutes=30))
LONG_AGO = NOW - timedelta(days=3)
RUNNING = Usage(Phase.RUNNING, Operation.NONE, DesiredState.RUNNING, LONG_AGO, LONG_AGO)
STANDBY = Usage(Phase.STANDBY, Operation.NONE, DesiredState.STANDBY, NOW, LONG_AGO)


@pytest.mark.parametrize(("phase", "desired"), list(product(Phase, DesiredState)))
def test_running_and_requested_workspaces_count(phase: Phase, desired: DesiredState) -> None:
    expected = phase is Phase.RUNNING or desired is DesiredState.RUNNING
    assert counts_as_running(phase, desired, deleted=False, container_exists=False) == expected


@pytest.mark.parametrize(("phase", "desired", "deleted"), list(product(Phase, DesiredState, (False, True))))
def test_a_container_takes_a_slot_in_every_state(phase: Phase, desired: DesiredState, deleted: bool) -> None:
    assert counts_as_running(phase, desired, deleted=deleted, container_exists=True)


@pytest.mark.parametrize("phase", Phase)
def test_a_deletion_frees_the_slot_once_the_container_is_gone(phase: Phase) -> None:
    counts = counts_as_running(phase, DesiredState.DELETED, deleted=True, container_exists=False)
    # The stored phase is RUNNING until the next observation.
    assert counts is (phase is Phase.RUNNING)


@pytest.mark.parametrize(
    ("own", "total", "hit"),
    [
        (0, 0, None),
        (1, 99, None),
        (2, 2, LimitScope.USER),
        (0, 100, LimitScope.GLOBAL),
        (2, 100, LimitScope.USER),
    ],
)
def test_one_more_may_run_only_below_both_limits(own: int, total: int, hit: LimitScope | None) -> None:
    assert exceeded_limit(own, total, RunningLimits()) is hit


@pytest.mark.parametrize(
    ("idle", "target"),
    [
        (timedelta(minutes=9), None),
        (timedelta(minutes=10), None),
        (timedelta(minutes=10, seconds=1), DesiredState.STANDBY),
    ],
)
def test_a_running_workspace_is_stopped_when_unused_longer_than_its_ttl(
    idle: timedelta, target: DesiredState | None
) -> None:
    assert idle_target(replace(RUNNING, last_access_at=NOW - idle), TIMES, NOW) is target


@pytest.mark.parametrize("last_access_at", [None, LONG_AGO])
def test_a_workspace_that_has_just_started_is_not_idle(last_access_at: datetime | None) -> None:
    fresh = replace(RUNNING, last_access_at=last_access_at, phase_changed_at=NOW - timedelta(minutes=1))
    assert idle_target(fresh, TIMES, NOW) is None


def test_a_standby_workspace_is_archived_after_its_time_in_standby() -> None:
    assert idle_target(STANDBY, TIMES, NOW) is DesiredState.ARCHIVED
    recent = replace(STANDBY, phase_changed_at=NOW - timedelta(minutes=29))
    assert idle_target(recent, TIMES, NOW) is None
    assert next_idle_change(recent, TIMES) == (DesiredState.ARCHIVED, NOW + timedelta(minutes=1))


def test_idle_times_are_those_of_the_workspace_up_to_the_bound() -> None:
    longest = IdleTimes(standby=timedelta(hours=1), archive=timedelta(hours=2))
    assert idle_times(None, None, TIMES, longest) == TIMES
    assert idle_times(60, 120, TIMES, longest) == IdleTimes(timedelta(minutes=1), timedelta(minutes=2))
    assert idle_times(86_400, 86_400, TIMES, longest) == longest
    assert idle_times(None, None, longest, TIMES) == TIMES


@pytest.mark.parametrize(
    ("phase", "target"),
    [
        (Phase.PENDING, DesiredState.STANDBY),
        (Phase.STANDBY, DesiredState.STANDBY),
        (Phase.RUNNING, DesiredState.STANDBY),
        (Phase.ARCHIVED, DesiredState.ARCHIVED),
        (Phase.ERROR, None),
    ],
)
def test_what_shall_run_for_a_disabled_user_stops(phase: Phase, target: DesiredState | None) -> None:
    assert disabled_target(phase, Operation.NONE, DesiredState.RUNNING) is target
    assert disabled_target(phase, Operation.STARTING, DesiredState.RUNNING) is None


@pytest.mark.parametrize("desired", set(DesiredState) - {DesiredState.RUNNING})
def test_what_a_disabled_user_has_stopped_is_left_alone(desired: DesiredState) -> None:
    for phase in Phase:
        assert disabled_target(phase, Operation.NONE, desired) is None


@pytest.mark.parametrize("usage", [RUNNING, STANDBY])
@pytest.mark.parametrize("operation", set(Operation) - {Operation.NONE})
def test_nothing_is_idle_while_an_operation_runs(usage: Usage, operation: Operation) -> None:
    assert idle_target(replace(usage, operation=operation), TIMES, NOW) is None


@pytest.mark.parametrize(
    ("phase", "desired"),
    [
        (phase, desired)
        for phase, desired in product(Phase, DesiredState)
        if (phase, desired)
        not in {(RUNNING.phase, RUNNING.desired_state), (STANDBY.phase, STANDBY.desired_state)}
    ],
)
def test_a_workspace_that_has_not_converged_is_left_alone(phase: Phase, desired: DesiredState) -> None:
    assert idle_target(replace(RUNNING, phase=phase, desired_state=desired), TIMES, NOW) is None
