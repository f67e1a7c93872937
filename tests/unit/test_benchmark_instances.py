"""The conclusions that the benchmarks of Docker and Kubernetes draw from their rounds."""

import pytest

from benchmarks.instances.contestants import BARE, HUB, OURS
from benchmarks.instances.results import Burst, Results, burst_section, overhead_remarks
from codehub.domain.states import Operation

IMAGE = "image"
STARTING = (IMAGE, OURS, Operation.STARTING)


def results_of(**seconds: list[float | None]) -> Results:
    """Return results with the same seconds for both operations, one per round."""
    names = {"bare": BARE, "ours": OURS, "hub": HUB}
    results = Results()
    for name, values in seconds.items():
        for operation in (Operation.STARTING, Operation.STOPPING):
            results.seconds[IMAGE, names[name], operation] = values
    return results


def test_overhead_is_computed_round_by_round() -> None:
    # Other load slowed the last two rounds down; the medians alone would give 0.9 s.
    results = results_of(bare=[1.0, 1.1, 2.0], ours=[1.1, 2.0, 2.1])
    assert results.overhead(STARTING) == pytest.approx(0.1)


def test_a_failed_round_is_left_out_for_both() -> None:
    results = results_of(bare=[1.0, None, 1.0], ours=[1.5, 9.0, None])
    assert results.overhead(STARTING) == 0.5
    assert results.times(STARTING, BARE) == 1.5


@pytest.mark.parametrize(
    ("ours", "remark_text"),
    [
        ([1.15, 1.15], "150.0 ms more than bare (goal: 150 ms): met"),
        ([1.2, 1.2], "200.0 ms more than bare (goal: 150 ms): NOT met"),
        ([None, None], "not measured"),
    ],
)
def test_the_goal_is_judged_by_the_overhead(ours: list[float | None], remark_text: str) -> None:
    remarks = overhead_remarks(IMAGE, results_of(bare=[1.0, 1.0], ours=ours, hub=[2.0, 2.0]))
    assert len(remarks) == 2
    assert all(remark_text in remark for remark in remarks)


def test_a_burst_with_a_failure_has_no_time_for_all() -> None:
    results = Results()
    for operation in (Operation.STARTING, Operation.STOPPING):
        results.bursts[IMAGE, BARE, operation] = [Burst(2.0, [1.0, 2.0], 2)]
        results.bursts[IMAGE, OURS, operation] = [Burst(4.0, [3.0, 4.0], 2), Burst(1.0, [1.0], 2)]
    _, ours = burst_section(IMAGE, results).rows
    assert list(ours) == [OURS, *[4.0, 0.5, 3.0, 4.0, "2.00"] * 2, 1]
