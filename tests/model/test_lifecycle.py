"""The lifecycle model, run by Hypothesis, and its fault-free half as a plain property."""

import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codehub.domain.planner import Decision
from codehub.domain.states import DESIRED_LEVELS, LEVELS, DesiredState
from tests.model.controller import System, converge
from tests.model.invariants import STEP_BOUND
from tests.model.machine import Lifecycle

# The model runs in seconds, but a counterexample takes minutes to shrink.
pytestmark = pytest.mark.timeout(1200)

TestLifecycle = Lifecycle.TestCase
# The same walks in every CI run; `make search` looks for new ones.
TestLifecycle.settings = settings(
    max_examples=300, stateful_step_count=40, deadline=None, derandomize=os.environ.get("CI") == "true"
)

REACHABLE = [DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED]


@settings(deadline=None)
@given(
    path=st.lists(st.tuples(st.sampled_from(REACHABLE), st.lists(st.integers(1, 8), max_size=4)), max_size=6)
)
def test_without_faults_every_state_is_reached_however_often_the_worker_dies(
    path: list[tuple[DesiredState, list[int]]],
) -> None:
    system = System()
    for desired, lives in path:
        system.row = replace(system.row, desired_state=desired)
        for steps in lives:
            run_for(system, steps)
        assert run_for(system, STEP_BOUND) is Decision.CONVERGED
        assert LEVELS[system.row.phase] == DESIRED_LEVELS[desired]
        assert system.row.error_reason is None


def run_for(system: System, steps: int) -> Decision | None:
    """Run a worker and kill it after so many steps; the next one knows only the row and the world."""
    worker = converge(system)
    for _ in range(steps):
        try:
            next(worker)
        except StopIteration as stopped:
            decision: Decision = stopped.value
            return decision
    return None
