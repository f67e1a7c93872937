"""Current workflows replay the histories of released ones, so a deployment breaks no running workflow."""

import asyncio
import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from codehub.domain import planner
from codehub.domain.states import Operation
from worker.registry import WORKFLOWS
from worker.workers import sandboxed_runner

HISTORIES = sorted(Path(__file__).with_name("histories").glob("*.json"))


def workflow_type(history: Path) -> str:
    first: dict[str, str] = json.loads(history.read_text())["events"][0][
        "workflowExecutionStartedEventAttributes"
    ]["workflowType"]
    return first["name"]


@pytest.mark.parametrize("recorded", HISTORIES, ids=lambda path: path.stem)
def test_a_released_history_replays(recorded: Path) -> None:
    replay(recorded)


def replay(recorded: Path) -> None:
    history = WorkflowHistory.from_json(recorded.stem, recorded.read_text())
    replayer = Replayer(workflows=WORKFLOWS, workflow_runner=sandboxed_runner())
    asyncio.run(replayer.replay_workflow(history))


@pytest.mark.parametrize("name", ["converge_delete", "converge_recover"])
def test_a_build_with_other_plans_follows_the_recorded_plan(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own plan, it would do nothing where the recorded run began an operation."""
    monkeypatch.setattr(planner, "_next_operation", lambda _: Operation.NONE)
    [recorded] = [history for history in HISTORIES if history.stem == name]
    replay(recorded)


def test_every_workflow_type_has_a_history() -> None:
    assert {workflow_type(history) for history in HISTORIES} == {each.__name__ for each in WORKFLOWS}
