"""An instance that stops answering: a blip changes nothing, a long hang does, and an exit does at once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from codehub.domain.conditions import ContainerFact, Observation, Reason, Snapshot, Status
from codehub.domain.judge import HANG_GRACE, judge
from codehub.domain.planner import Decision, Plan, plan
from codehub.domain.states import DesiredState, Operation, Phase
from tests.unit.domain.builders import ALL_RUNNING, NOW, OUTAGE, VOLUME_AND_ARCHIVE, running, seen, standby

HUNG = replace(ALL_RUNNING, container=ContainerFact.UNHEALTHY)
EXITED = replace(ALL_RUNNING, container=ContainerFact.NOT_READY)
OUTDATED = replace(ALL_RUNNING, outdated=("image", "memory"))
CURRENT = replace(ALL_RUNNING, outdated=())
MOMENT = timedelta(microseconds=1)


def look(snapshot: Snapshot, facts: Observation, after: timedelta) -> Snapshot:
    return judge(snapshot, facts, NOW + after)


def test_a_running_instance_that_misses_its_health_checks_for_less_than_the_grace_stays_ready() -> None:
    blip = look(look(running(), HUNG, timedelta(0)), HUNG, HANG_GRACE - MOMENT)
    assert blip.phase is Phase.RUNNING
    assert plan(blip) == Plan(Decision.CONVERGED)
    assert blip.conditions.container_ready == running().conditions.container_ready
    assert blip.conditions.container_answers.reason == Reason.NOT_ANSWERING


def test_one_that_does_not_answer_for_the_grace_is_started_again() -> None:
    hung = look(look(running(), HUNG, timedelta(0)), HUNG, HANG_GRACE)
    assert hung.phase is Phase.STANDBY
    assert plan(hung) == Plan(Decision.RUN, Operation.STARTING)
    assert hung.conditions.container_exists


def test_an_answer_ends_the_count() -> None:
    first = look(running(), HUNG, timedelta(0))
    answered = look(first, ALL_RUNNING, HANG_GRACE / 2)
    assert answered.conditions.container_answers.reason == Reason.ANSWERS
    again = look(look(answered, HUNG, HANG_GRACE), HUNG, 2 * HANG_GRACE - MOMENT)
    assert again.phase is Phase.RUNNING


def test_a_provider_that_cannot_be_asked_neither_counts_nor_ends_the_count() -> None:
    first = look(running(), HUNG, timedelta(0))
    silent = look(first, OUTAGE, HANG_GRACE)
    assert silent.phase is Phase.RUNNING
    assert look(silent, HUNG, HANG_GRACE).phase is Phase.STANDBY


def test_one_that_exited_is_started_again_at_once() -> None:
    for before in (running(), seen(running(), HUNG)):
        exited = seen(before, EXITED)
        assert exited.phase is Phase.STANDBY
        assert exited.conditions.container_answers.reason == Reason.NOT_RUNNING
        assert plan(exited) == Plan(Decision.RUN, Operation.STARTING)


def test_one_that_was_not_ready_yet_becomes_ready_by_an_answer_only() -> None:
    starting = replace(standby(DesiredState.RUNNING), operation=Operation.STARTING)
    slow = look(look(starting, HUNG, timedelta(0)), HUNG, MOMENT)
    assert slow.conditions.container_ready.reason == Reason.NOT_READY
    assert plan(slow) == Plan(Decision.RUN, Operation.STARTING)
    assert plan(seen(slow, ALL_RUNNING)) == Plan(Decision.SETTLE, Operation.STARTING)


def test_one_that_hung_for_the_grace_is_ready_again_by_an_answer_only() -> None:
    hung = look(look(running(), HUNG, timedelta(0)), HUNG, HANG_GRACE)
    assert look(hung, HUNG, HANG_GRACE + MOMENT).phase is Phase.STANDBY
    assert look(hung, ALL_RUNNING, HANG_GRACE + MOMENT).phase is Phase.RUNNING


@pytest.mark.parametrize("facts", [HUNG, ALL_RUNNING])
def test_a_changed_configuration_is_told_until_a_look_says_otherwise(facts: Observation) -> None:
    outdated = seen(running(), OUTDATED, facts)
    assert outdated.phase is Phase.RUNNING
    assert plan(outdated) == Plan(Decision.CONVERGED)
    assert outdated.conditions.restart_to_apply == "Restart to apply: image, memory."
    assert seen(outdated, CURRENT).conditions.restart_to_apply is None


@pytest.mark.parametrize("facts", [EXITED, VOLUME_AND_ARCHIVE])
def test_there_is_nothing_to_apply_to_what_does_not_run(facts: Observation) -> None:
    stopped = seen(running(), OUTDATED, facts)
    assert stopped.conditions.restart_to_apply is None
    assert stopped.conditions.configuration_current.status is Status.UNKNOWN
