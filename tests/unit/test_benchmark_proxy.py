"""The proxy benchmark parses the output of wrk and draws conclusions from its rounds."""

import pytest

from benchmarks.api.load_generator import BadResponse
from benchmarks.proxy.http_load import parse_wrk_output
from benchmarks.proxy.ports import IDE, PORT, Measurement, rows_of
from benchmarks.proxy.results import AUTH, BASE, OURS, Goal, Results, p99, rate
from benchmarks.proxy.upstream import frame, payload_size
from benchmarks.proxy.workloads import Figures

# wrk prints a space after a unit of one letter.
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


def test_latencies_of_wrk_are_converted_to_microseconds() -> None:
    outcome = parse_wrk_output(WRK)
    assert (outcome.count, outcome.seconds) == (40210, 2.01)
    assert (outcome.p50, outcome.p99) == (652.0, 1_700_000.0)


@pytest.mark.parametrize(
    "fault", ["Non-2xx or 3xx responses: 7", "Socket errors: connect 0, read 3, write 0, timeout 0"]
)
def test_failed_requests_give_no_figures(fault: str) -> None:
    with pytest.raises(BadResponse, match=fault.partition(":")[0]):
        parse_wrk_output(f"{WRK}  {fault}\n")


@pytest.mark.parametrize("size", [0, 64, 125, 126, 65535, 65536])
@pytest.mark.parametrize("masked", [True, False])
def test_the_size_of_a_frame_can_be_read_back(size: int, masked: bool) -> None:
    whole = frame(size, masked=masked)
    assert payload_size(whole) == size
    assert len(whole) - size == (2 if size < 126 else 4 if size < 65536 else 10) + (4 if masked else 0)


def results_of(**rates: list[float | None]) -> Results:
    """Return results with these rates per round; p99 is ten thousand divided by the rate."""
    results = Results()
    for name, values in rates.items():
        figures = [value and Figures(value, None, 10_000 / value, None) for value in values]
        results.rounds[TITLE, name.replace("_", "-")] = [each or None for each in figures]
    return results


def test_ratios_are_computed_round_by_round() -> None:
    # The medians alone would give 100 / 100, but ours was twice as fast in two of three rounds.
    results = results_of(nginx=[100.0, 10.0, 200.0], ours=[200.0, 20.0, 100.0])
    assert results.ratio(TITLE, OURS, BASE, rate) == 2.0


def test_a_failed_round_is_left_out_for_both() -> None:
    results = results_of(nginx=[100.0, None, 100.0], ours=[50.0, 400.0, None])
    assert results.ratio(TITLE, OURS, BASE, rate) == 0.5


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (Goal(TITLE, rate, AUTH, 1.0), "met"),
        (Goal(TITLE, rate, BASE, 0.8), "NOT met"),
        (Goal(TITLE, p99, BASE, 2.0, at_most=True), "met"),
        (Goal(TITLE, p99, BASE, 1.5, at_most=True), "NOT met"),
        (Goal(TITLE, rate, "chp", 10.0), "not measured"),
    ],
)
def test_goals_are_judged_by_ratios(goal: Goal, expected: str) -> None:
    results = results_of(nginx=[100.0], nginx_auth=[60.0], ours=[60.0])
    assert goal.row(results)[-1] == expected


def test_the_ratio_of_ports_is_the_median_of_the_rounds_ratios() -> None:
    rounds = [
        {IDE: Measurement(ide, 100.0, 10.0), PORT: Measurement(port, 200.0, 20.0)}
        for ide, port in ((1000.0, 900.0), (500.0, 250.0), (2000.0, 1400.0))
    ]
    assert rows_of(TITLE, rounds) == [
        (TITLE, IDE, 1000, 100, 10.0, ""),
        (TITLE, PORT, 900, 200, 20.0, "0.70"),
    ]
