"""What the proxy's benchmark reads from wrk, and what it concludes from its rounds."""

import pytest

from benchmarks.api.load_generator import Refused
from benchmarks.proxy.http_load import read_wrk
from benchmarks.proxy.results import AUTH, BASE, OURS, Goal, Results, p99, rate
from benchmarks.proxy.upstream import frame, payload_size
from benchmarks.proxy.workloads import Figures

# The space after a unit of one letter is wrk's own.
WRK = """Running 2s test @ http://127.0.0.1:1/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   652.10us    1.20ms   1.70s    93.00%
    Req/Sec    20.10k     1.00k   21.00k    70.00%
  Latency Distribution
     50%  652.00us
     75%    1.00ms
     90%    1.20ms
     99%    1.70s 
  40210 requests in 2.01s, 45.10MB read
Requests/sec:  20004.97
"""  # noqa: W291
TITLE = "pages"


def test_wrk_is_read_in_microseconds_whatever_its_units() -> None:
    outcome = read_wrk(WRK)
    assert (outcome.count, outcome.seconds) == (40210, 2.01)
    assert (outcome.p50, outcome.p99) == (652.0, 1_700_000.0)


@pytest.mark.parametrize(
    "fault", ["Non-2xx or 3xx responses: 7", "Socket errors: connect 0, read 3, write 0, timeout 0"]
)
def test_answers_that_were_refused_are_no_figures(fault: str) -> None:
    with pytest.raises(Refused, match=fault.partition(":")[0]):
        read_wrk(f"{WRK}  {fault}\n")


@pytest.mark.parametrize("size", [0, 64, 125, 126, 65535, 65536])
@pytest.mark.parametrize("masked", [True, False])
def test_a_frame_tells_its_size(size: int, masked: bool) -> None:
    whole = frame(size, masked=masked)
    assert payload_size(whole) == size
    assert len(whole) - size == (2 if size < 126 else 4 if size < 65536 else 10) + (4 if masked else 0)


def results_of(**rates: list[float | None]) -> Results:
    """Rates by contestant, one per round; p99 is ten thousand divided by it."""
    results = Results()
    for name, values in rates.items():
        figures = [value and Figures(value, None, 10_000 / value, None) for value in values]
        results.rounds[TITLE, name.replace("_", "-")] = [each or None for each in figures]
    return results


def test_ratios_are_taken_round_by_round() -> None:
    # Medians alone would say 100 / 100; in two of three rounds ours was twice as fast.
    results = results_of(nginx=[100.0, 10.0, 200.0], ours=[200.0, 20.0, 100.0])
    assert results.ratio(TITLE, OURS, BASE, rate) == 2.0


def test_a_round_that_failed_is_left_out_for_both() -> None:
    results = results_of(nginx=[100.0, None, 100.0], ours=[50.0, 400.0, None])
    assert results.ratio(TITLE, OURS, BASE, rate) == 0.5


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (Goal(TITLE, rate, AUTH, 1.0), "met"),
        (Goal(TITLE, rate, BASE, 0.8), "NOT met"),
        (Goal(TITLE, p99, BASE, 2.0, at_most=True), "met"),
        (Goal(TITLE, p99, BASE, 1.5, at_most=True), "NOT met"),
        (Goal(TITLE, rate, "chp", 10.0), "not measured"),
    ],
)
def test_goals_are_judged_by_ratios(goal: Goal, said: str) -> None:
    results = results_of(nginx=[100.0], nginx_auth=[60.0], ours=[60.0])
    assert goal.row(results)[-1] == said
