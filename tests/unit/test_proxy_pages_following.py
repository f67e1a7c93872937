"""The page that follows an operation, before its script runs."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from codehub.domain.states import DesiredState, Operation, Phase
from codehub.ports import Progress
from codehub.services.convergence import WAITING
from codehub.words import NOTABLE_STEPS, STEPS
from proxy.pages.formatting import format_time
from tests.html_pages import read, text_of, visible_states
from tests.proxy_visits import ID, NOW, PAGES, PATH, under_way, visit


@pytest.mark.parametrize("operation", [each for each in Operation if each is not Operation.NONE])
def test_every_operation_can_be_followed(operation: Operation) -> None:
    page = read(PAGES.following(under_way(operation), None, then_open=False))
    assert visible_states(page) == [operation]
    assert "4 s so far" in text_of(page)
    attributes = dict(page.one("main").attributes)
    del attributes["data-steps"]
    assert attributes == {
        "data-progress": f"/hub/w/{ID}/.codehub/progress",
        "data-now": "2026-07-01T12:00:00+00:00",
        "data-since": "2026-07-01T11:59:56+00:00",
        "data-slow-after": "90",
    }


@pytest.mark.parametrize("desired", DesiredState)
@pytest.mark.parametrize("phase", Phase)
def test_between_two_operations_a_page_shows_the_desired_state(phase: Phase, desired: DesiredState) -> None:
    page = read(PAGES.following(visit(phase=phase, desired_state=desired), None, then_open=False))
    assert visible_states(page) == [f"TO_{desired}"]


def test_a_recovery_is_shown() -> None:
    page = read(PAGES.following(visit(phase=Phase.ERROR, recovering=True), None, then_open=False))
    assert visible_states(page) == ["RECOVERING"]


def test_a_page_has_texts_for_every_end() -> None:
    page = read(PAGES.following(under_way(Operation.STARTING), None, then_open=False))
    ends = {each.attributes["data-state"] for each in page.all("section")}
    # An error has its own page.
    assert {f"IS_{phase}" for phase in Phase if phase is not Phase.ERROR} <= ends
    again = [each for each in page.one("main").all("a") if each.text == "Open again"]
    assert [each.attributes["href"] for each in again] == [f"/hub{PATH}"]


@pytest.mark.parametrize(
    ("progress", "bar", "text"),
    [
        (Progress("download", 312_000_000, 900_000_000), ("312000000", "900000000"), "312 MB of 900 MB"),
        (Progress("upload", 5_000_000), (None, None), "5.0 MB"),
        (Progress("upload", 12, 9), ("9", "9"), "12 B of 9 B"),
        (Progress("wait for the IDE", 4, 120, "seconds"), (None, None), "4 s so far"),
        (Progress("launch", 1, 3, "steps"), ("1", "3"), "4 s so far"),
        (Progress("stop"), (None, None), "4 s so far"),
        (Progress("pulling the image", 4_000_000), (None, None), "Pulling the image · 4.0 MB"),
        (WAITING, (None, None), "Waiting for its turn · 4 s so far"),
    ],
)
def test_known_progress_is_shown(progress: Progress, bar: tuple[str | None, str | None], text: str) -> None:
    page = read(PAGES.following(under_way(Operation.RESTORING), progress, then_open=False))
    attributes = page.one("progress").attributes
    assert (attributes.get("value"), attributes.get("max")) == bar
    (element,) = [each for each in page.all("span") if each.attributes["data-part"] == "figures"]
    assert element.text == text


def test_the_script_names_the_same_steps() -> None:
    page = read(PAGES.following(under_way(Operation.STARTING), None, then_open=False))
    steps = json.loads(page.one("main").attributes["data-steps"])
    assert steps == {step: STEPS[step] for step in NOTABLE_STEPS}


@pytest.mark.parametrize(("seconds", "slow"), [(90, False), (91, True)])
def test_a_slow_operation_is_announced(seconds: int, slow: bool) -> None:
    started = visit(operation=Operation.STARTING, op_started_at=NOW - timedelta(seconds=seconds))
    page = read(PAGES.following(started, None, then_open=False))
    (hint,) = [each for each in page.all("p") if each.attributes.get("data-part") == "slow"]
    assert ("hidden" not in hint.attributes) == slow


def test_a_page_that_waits_for_another_operation_continues_after_it() -> None:
    page = read(PAGES.following(under_way(Operation.STOPPING), None, then_open=True))
    assert page.one("main").attributes["data-then-open"] == "yes"
    assert "this page continues automatically" in text_of(page.one("main"))


def test_the_page_has_every_part_that_the_script_uses() -> None:
    page = read(PAGES.following(under_way(Operation.STARTING), None, then_open=False))
    named = set(re.findall(r'part\("(\w+)"\)', page.one("script").text))
    assert named
    assert named == {each.attributes["data-part"] for each in page.all() if "data-part" in each.attributes}


def test_the_year_is_shown_unless_it_is_the_current_one() -> None:
    assert format_time(datetime(2025, 12, 31, 23, 5, tzinfo=UTC), NOW) == "31 December 2025, 23:05 UTC"
