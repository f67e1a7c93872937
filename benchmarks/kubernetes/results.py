"""Summarize what only the benchmark of Kubernetes measures: shares of the time, and calls to the API."""

import statistics
from collections.abc import Sequence

from benchmarks.instances.contestants import BARE, NAMES, OURS
from benchmarks.instances.results import (
    OPERATIONS,
    Results,
    compare_with_hub,
    figure,
    judge_overhead,
)
from benchmarks.kubernetes.calls import CallCounter, Calls
from benchmarks.kubernetes.pod_times import AFTER, BEFORE, SHARES
from benchmarks.report import Cell, Section
from codehub.domain.states import Operation

NOTHING = "-"


def share_section(image: str, results: Results) -> Section:
    """Return who takes the time: the contestant or the cluster."""
    names = [name for name in NAMES if results.measured((image, name, Operation.STARTING))]
    columns = ("", *(f"{operation} {share}" for operation in OPERATIONS for share in SHARES))
    rows = [(name, *_shares(image, name, results)) for name in names]
    remarks = [_conclude(image, operation, results) for operation in OPERATIONS]
    return Section(f"{image}: who takes the time (median ms)", columns, rows, remarks)


def _shares(image: str, name: str, results: Results) -> list[Cell]:
    keys = [((image, name, operation), share) for operation in OPERATIONS for share in SHARES]
    return [figure(results.parts[key], 50) for key in keys]


def _conclude(image: str, operation: Operation, results: Results) -> str:
    ours, bare = (_own_seconds((image, name, operation), results) for name in (OURS, BARE))
    if not ours or not bare:
        return f"{operation}: not measured"
    overhead = statistics.median(ours) - statistics.median(bare)
    return f"{judge_overhead(operation, overhead)}, outside of the cluster's own time"


def _own_seconds(key: tuple[str, str, Operation], results: Results) -> list[float]:
    """Return what the contestant adds to the cluster's own time, in each round."""
    pairs = zip(results.parts[key, BEFORE], results.parts[key, AFTER], strict=True)
    return [before + after for before, after in pairs]


def hub_remarks(image: str, results: Results) -> list[str]:
    return [f"{operation}: {compare_with_hub((image, OURS, operation), results)}" for operation in OPERATIONS]


def calls_section(counter: CallCounter) -> Section:
    rows = [
        _calls_row(f"{name}, {operation}", workspaces, calls, per=workspaces)
        for (name, operation, workspaces), calls in counter.typical().items()
    ]
    rows += [_calls_row("one sweep", running, calls, per=1) for running, calls in counter.sweeps.items()]
    return Section("Calls to the API server", ("", "workspaces", "calls", "which"), rows, CALLS_LEGEND)


CALLS_LEGEND = (
    "For one operation on one workspace, on average; and for one sweep over all workspaces.",
    "Watches and lists of all objects, which go on in the background, do not count as an operation's.",
)


def _calls_row(what: str, workspaces: int, calls: Calls, per: int) -> Sequence[Cell]:
    names = ", ".join(f"{name} {_each(count, per)}" for name, count in calls.most_common())
    return (what, workspaces, _each(calls.total(), per), names or NOTHING)


def _each(count: int, per: int) -> str:
    return f"{count / per:.1f}".removesuffix(".0")
