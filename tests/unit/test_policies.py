"""Settings limit steps; no timeout of a workflow is shorter."""

from datetime import timedelta

import pytest

from codehub.contracts import StepQueue
from codehub.policy import StepLimits, policy_of, stall_of, step_limits_of
from codehub.settings import load_settings
from codehub.settings.types import MAX_STEP_SECONDS
from workflows.policies import ARCHIVE, CHANGE, RESTORE, START, STEP_TIMEOUT, StepPolicy

STEPS = {"archive": ARCHIVE, "restore": RESTORE, "start": START, "change": CHANGE}
# Every setting that limits a step or a part of one.
LONGEST = {
    "CODEHUB_DOCKER_START_SECONDS": str(MAX_STEP_SECONDS),
    "CODEHUB_DOCKER_STOP_SECONDS": str(MAX_STEP_SECONDS),
    "CODEHUB_WORKER_STALL_SECONDS": str(MAX_STEP_SECONDS),
}


@pytest.mark.parametrize("policy", STEPS.values(), ids=STEPS)
def test_no_setting_allows_a_step_to_reach_the_step_timeout(policy: StepPolicy) -> None:
    settings = load_settings(LONGEST)
    longest = stall_of(settings) + timedelta(seconds=settings.docker.start_seconds)
    assert policy.options["start_to_close_timeout"] == STEP_TIMEOUT
    assert longest * 5 < STEP_TIMEOUT


@pytest.mark.parametrize("variable", LONGEST)
def test_a_setting_beyond_the_step_timeout_is_refused(variable: str) -> None:
    with pytest.raises(Exception, match=f"{variable}=86401: must be a whole number of seconds, 1 to 86400"):
        load_settings({variable: str(MAX_STEP_SECONDS + 1)})


@pytest.mark.parametrize("policy", STEPS.values(), ids=STEPS)
def test_no_timeout_includes_the_wait_for_a_slot(policy: StepPolicy) -> None:
    assert not {"schedule_to_close_timeout", "schedule_to_start_timeout"} & policy.options.keys()


def test_each_kind_of_step_has_its_own_queue() -> None:
    assert {policy.queue for policy in STEPS.values()} == set(StepQueue)


def test_a_stop_has_its_own_time_before_it_counts_as_stalled() -> None:
    settings = load_settings({"CODEHUB_DOCKER_STOP_SECONDS": "900", "CODEHUB_WORKER_STALL_SECONDS": "600"})
    assert policy_of(settings).stall == timedelta(seconds=1500)


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        (1, StepLimits(archives=1, restores=1, starts=4, others=100)),
        (2, StepLimits(archives=2, restores=2, starts=4, others=100)),
        (16, StepLimits(archives=16, restores=16, starts=32, others=100)),
    ],
)
def test_limits_depend_on_the_number_of_processors(cores: int, expected: StepLimits) -> None:
    assert step_limits_of(load_settings({}), cores) == expected


def test_limits_can_be_set() -> None:
    environment = {
        "CODEHUB_WORKER_CONCURRENT_ARCHIVES": "7",
        "CODEHUB_WORKER_CONCURRENT_RESTORES": "8",
        "CODEHUB_WORKER_CONCURRENT_STARTS": "9",
        "CODEHUB_WORKER_CONCURRENT_ACTIVITIES": "10",
    }
    assert step_limits_of(load_settings(environment), 2) == StepLimits(7, 8, 9, 10)
