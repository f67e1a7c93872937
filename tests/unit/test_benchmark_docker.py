"""What the Docker benchmark concludes from its rounds."""

import pytest

from benchmarks.docker.results import BARE, HUB, OURS, Crowd, Results, crowd_section, single_section
from codehub.domain.states import Operation

IMAGE = "image"
STARTING = (IMAGE, OURS, Operation.STARTING)


def results_of(**seconds: list[float | None]) -> Results:
    """The same for both operations, by contestant, one per round."""
    names = {"bare": BARE, "ours": OURS, "hub": HUB}
    results = Results()
    for name, values in seconds.items():
        for operation in (Operation.STARTING, Operation.STOPPING):
            results.seconds[IMAGE, names[name], operation] = values
    return results


def test_what_comes_on_top_is_taken_round_by_round() -> None:
    # Others slowed the last two rounds down; the medians alone would say 0.9 s.
    results = results_of(bare=[1.0, 1.1, 2.0], ours=[1.1, 2.0, 2.1])
    assert results.beyond_bare(STARTING) == pytest.approx(0.1)


def test_a_round_that_failed_is_left_out_for_both() -> None:
    results = results_of(bare=[1.0, None, 1.0], ours=[1.5, 9.0, None])
    assert results.beyond_bare(STARTING) == 0.5
    assert results.times(STARTING, BARE) == 1.5


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ([1.15, 1.15], "150.0 ms beyond bare Docker (goal: 150 ms): met"),
        ([1.2, 1.2], "200.0 ms beyond bare Docker (goal: 150 ms): NOT met"),
        ([None, None], "not measured"),
    ],
)
def test_the_goal_is_judged_by_what_comes_on_top(ours: list[float | None], said: str) -> None:
    section = single_section(IMAGE, results_of(bare=[1.0, 1.0], ours=ours, hub=[2.0, 2.0]))
    assert all(said in remark for remark in section.remarks[1:])


def test_a_crowd_that_lost_somebody_has_no_time_for_all() -> None:
    results = Results()
    for operation in (Operation.STARTING, Operation.STOPPING):
        results.crowds[IMAGE, BARE, operation] = [Crowd(2.0, [1.0, 2.0], 2)]
        results.crowds[IMAGE, OURS, operation] = [Crowd(4.0, [3.0, 4.0], 2), Crowd(1.0, [1.0], 2)]
    _, ours = crowd_section(IMAGE, results).rows
    assert list(ours) == [OURS, 4.0, 3.0, "2.00", 4.0, 3.0, "2.00", 1]
