"""The conclusions that the Kubernetes benchmark draws from its rounds and from the audit log."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.instances.contestants import BARE, OURS
from benchmarks.instances.results import OPERATIONS, Results
from benchmarks.kubernetes.calls import Call, CallCounter, CallLog
from benchmarks.kubernetes.pod_times import AFTER, BEFORE, CLUSTER
from benchmarks.kubernetes.results import calls_section, share_section
from codehub.domain.states import Operation
from testkit.deployment import Deployment

IMAGE = "image"
ACCOUNTS = {BARE: "bare", OURS: "codehub"}


def event(number: int, verb: str, resource: str, name: str = "", account: str = "codehub") -> dict[str, Any]:
    return {
        "auditID": str(number),
        "verb": verb,
        "user": {"username": f"system:serviceaccount:default:{account}"},
        "objectRef": {"resource": resource, **({"name": name} if name else {})},
    }


def write(path: Path, *events: dict[str, Any]) -> None:
    with path.open("a") as log:
        log.writelines(json.dumps(each) + "\n" for each in events)


@pytest.fixture
def log(tmp_path: Path) -> CallLog:
    path = tmp_path / "audit.jsonl"
    path.touch()
    return CallLog(path, "default")


def test_a_watch_that_is_logged_twice_counts_once(log: CallLog) -> None:
    write(log.path, event(1, "watch", "pods", "a"), event(1, "watch", "pods", "a"))
    assert log.since(0, "codehub") == [Call("watch", "pods", "a")]


def test_calls_of_others_and_earlier_ones_do_not_count(log: CallLog) -> None:
    write(log.path, event(1, "get", "pods", "a"))
    position = log.position()
    write(log.path, event(2, "get", "pods", "a", account="bare"), event(3, "create", "pods"))
    assert log.since(position, "codehub") == [Call("create", "pods")]


def test_a_request_without_an_object_is_discovery() -> None:
    assert str(Call.from_audit({"verb": "get"})) == "get discovery"


@pytest.fixture
def counter(log: CallLog) -> CallCounter:
    counter = CallCounter(log, ACCOUNTS, cast("Deployment", None))
    # No sweep runs: there is no deployment.
    counter.sweeps[1] = Counter()
    return counter


async def test_an_operation_has_no_part_in_lists_and_watches_of_everything(counter: CallCounter) -> None:
    async with counter.around(1)(OURS, Operation.STARTING):
        write(
            counter.log.path,
            event(1, "list", "pods"),
            event(2, "watch", "persistentvolumeclaims"),
            event(3, "watch", "pods", "a"),
            event(4, "list", "nodes"),
        )
    expected = Counter({"watch pods": 1, "list nodes": 1})
    assert counter.typical() == {(OURS, Operation.STARTING, 1): expected}


async def test_the_median_round_counts(counter: CallCounter) -> None:
    for calls in (2, 1, 3):
        async with counter.around(1)(OURS, Operation.STOPPING):
            write(counter.log.path, *(event(number, "get", "configmaps", "a") for number in range(calls)))
    assert counter.typical() == {(OURS, Operation.STOPPING, 1): Counter({"get configmaps": 2})}


def test_calls_are_shown_for_each_workspace_and_for_a_whole_sweep(counter: CallCounter) -> None:
    counter.operations[OURS, Operation.STARTING, 50] = [Counter({"get pods": 150, "create pods": 55})]
    counter.sweeps = {50: Counter({"list pods": 1})}
    operation, sweep = calls_section(counter).rows
    assert list(operation) == ["CodeHub, STARTING", 50, "4.1", "get pods 3, create pods 1.1"]
    assert list(sweep) == ["one sweep", 50, "1", "list pods 1"]


def results_of(ours_before: float) -> Results:
    """Return results in which the cluster is slower for CodeHub, by chance."""
    results = Results()
    seconds = {BARE: (0.01, 1.0, 0.0), OURS: (ours_before, 2.0, 0.06)}
    for operation in OPERATIONS:
        for name, shares in seconds.items():
            key = (IMAGE, name, operation)
            results.seconds[key] = [sum(shares)] * 2
            for share, value in zip((BEFORE, CLUSTER, AFTER), shares, strict=True):
                results.parts[key, share] = [value] * 2
    return results


@pytest.mark.parametrize(
    ("before", "remark_text"),
    [
        (0.1, "150.0 ms more than bare (goal: 150 ms): met"),
        (0.11, "160.0 ms more than bare (goal: 150 ms): NOT"),
    ],
)
def test_the_goal_is_judged_without_the_time_of_the_cluster(before: float, remark_text: str) -> None:
    section = share_section(IMAGE, results_of(before))
    assert len(section.remarks) == 2
    assert all(remark_text in remark for remark in section.remarks)
