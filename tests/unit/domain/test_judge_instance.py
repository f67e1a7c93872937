"""An instance that stops responding: a short hang changes nothing, a long one does, an exit does at once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from codehub.domain.conditions import ContainerFact, Observation, Reason, Snapshot, Status
from codehub.domain.judge import HANG_GRACE, judge
from codehub.domain.planner import Decision, Plan, plan
from codehub.domain.states import DesiredState, Operation, Phase
from tests.unit.domain.builders import (
    ALL_RUNNING,
    NOW,
    OUTAGE,
    VOLUME_AND_ARCHIVE,
    observed,
    running,
    standby,
)

HUNG = replace(ALL_RUNNING, container=ContainerFact.UNHEALTHY)
EXITED = replace(ALL_RUNNING, container=ContainerFact.NOT_READY)
OUTDATED = replace(ALL_RUNNING, outdated=("image", "memory"))
CURRENT = replace(ALL_RUNNING, outdated=())
MOMENT = timedelta(microseconds=1)


def observe(snapshot: Snapshot, observation: Observation, after: timedelta) -> Snapshot:
    return judge(snapshot, observation, NOW + after)


def test_an_instance_that_fails_its_health_checks_for_less_than_the_grace_period_stays_ready() -> None:
    blip = observe(observe(running(), HUNG, timedelta(0)), HUNG, HANG_GRACE - MOMENT)
    assert blip.phase is Phase.RUNNING
    assert plan(blip) == Plan(Decision.CONVERGED)
    assert blip.conditions.container_ready == running().conditions.container_ready
    assert blip.conditions.container_answers.reason == Reason.NOT_ANSWERING


def test_an_instance_that_does_not_respond_for_the_grace_period_is_started_again() -> None:
    hung = observe(observe(running(), HUNG, timedelta(0)), HUNG, HANG_GRACE)
    assert hung.phase is Phase.STANDBY
    assert plan(hung) == Plan(Decision.RUN, Operation.STARTING)
    assert hung.conditions.container_exists


def test_a_response_resets_the_grace_period() -> None:
    first = observe(running(), HUNG, timedelta(0))
    answered = observe(first, ALL_RUNNING, HANG_GRACE / 2)
    assert answered.conditions.container_answers.reason == Reason.ANSWERS
    again = observe(observe(answered, HUNG, HANG_GRACE), HUNG, 2 * HANG_GRACE - MOMENT)
    assert again.phase is Phase.RUNNING


def test_an_unreachable_provider_neither_starts_nor_resets_the_grace_period() -> None:
    first = observe(running(), HUNG, timedelta(0))
    silent = observe(first, OUTAGE, HANG_GRACE)
    assert silent.phase is Phase.RUNNING
    assert observe(silent, HUNG, HANG_GRACE).phase is Phase.STANDBY


def test_an_instance_that_exited_is_started_again_at_once() -> None:
    for before in (running(), observed(running(), HUNG)):
        exited = observed(before, EXITED)
        assert exited.phase is Phase.STANDBY
        assert exited.conditions.container_answers.reason == Reason.NOT_RUNNING
        assert plan(exited) == Plan(Decision.RUN, Operation.STARTING)


def test_a_new_instance_becomes_ready_only_when_it_responds() -> None:
    starting = replace(standby(DesiredState.RUNNING), operation=Operation.STARTING)
    slow = observe(observe(starting, HUNG, timedelta(0)), HUNG, MOMENT)
    assert slow.conditions.container_ready.reason == Reason.NOT_READY
    assert plan(slow) == Plan(Decision.RUN, Operation.STARTING)
    assert plan(observed(slow, ALL_RUNNING)) == Plan(Decision.SETTLE, Operation.STARTING)


def test_an_instance_that_hung_is_ready_again_only_when_it_responds() -> None:
    hung = observe(observe(running(), HUNG, timedelta(0)), HUNG, HANG_GRACE)
    assert observe(hung, HUNG, HANG_GRACE + MOMENT).phase is Phase.STANDBY
    assert observe(hung, ALL_RUNNING, HANG_GRACE + MOMENT).phase is Phase.RUNNING


@pytest.mark.parametrize("observation", [HUNG, ALL_RUNNING])
def test_a_changed_configuration_is_reported_until_an_observation_says_otherwise(
    observation: Observation,
) -> None:
    outdated = observed(running(), OUTDATED, observation)
    assert outdated.phase is Phase.RUNNING
    assert plan(outdated) == Plan(Decision.CONVERGED)
    assert outdated.conditions.restart_to_apply == "Restart to apply: image, memory."
    assert observed(outdated, CURRENT).conditions.restart_to_apply is None


@pytest.mark.parametrize("observation", [EXITED, VOLUME_AND_ARCHIVE])
def test_an_instance_that_does_not_run_has_nothing_to_apply(observation: Observation) -> None:
    stopped = observed(running(), OUTDATED, observation)
    assert stopped.conditions.restart_to_apply is None
    assert stopped.conditions.configuration_current.status is Status.UNKNOWN
