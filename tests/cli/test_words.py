"""Times, durations, names and live events, without a server."""

from datetime import UTC, datetime, timedelta

import pytest

from cli.errors import Failed, printable
from cli.formatting import at, parse_duration, rough
from cli.words import command
from cli.workspace.live_events import Event, parse_events
from cli.workspace.lookup import pick

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("600", 600), ("90s", 90), ("10m", 600), ("10 min", 600), ("2h", 7200), ("7d", 604_800)],
)
def test_a_duration_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "1.5h", "2w", "m"])
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="10m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (-90, "1 min"), (7_200, "2 h"), (200_000, "2 d")]
)
def test_a_duration_is_told_in_its_greatest_unit(seconds: int, words: str) -> None:
    assert rough(timedelta(seconds=seconds)) == words


def test_a_time_is_told_by_minutes_if_it_is_near() -> None:
    assert at((NOW + timedelta(minutes=8)).isoformat(), NOW) == "in 8 min"
    assert at((NOW - timedelta(minutes=8)).isoformat(), NOW) == "now"


def test_a_time_is_told_by_the_clock_if_it_is_far() -> None:
    there = (NOW + timedelta(days=1)).astimezone()
    assert at(there.isoformat(), NOW) == f"tomorrow {there:%H:%M}"
    there = (NOW + timedelta(days=3)).astimezone()
    assert at(there.isoformat(), NOW) == f"on {there:%Y-%m-%d %H:%M}"


def test_events_are_read_as_a_browser_does() -> None:
    lines = [
        ": hello",
        "retry: 2000",
        "",
        "event: one",
        "id: 5",
        "data: {",
        'data: "a": 1}',
        "",
        "event: bare",
        "",
    ]
    assert list(parse_events([*lines, "event: cut", "data: {}"])) == [Event("one", {"a": 1})]


def test_what_moves_a_cursor_is_not_printed() -> None:
    assert printable("a\x1b[2Jb\rc\x9bd\te\n") == "a�[2Jb�c�d\te\n"


def test_a_name_with_blanks_can_be_typed_as_told() -> None:
    assert command("show", {"name": "my notes"}) == "codehub ws show 'my notes'"


def test_a_name_that_is_meant_is_guessed() -> None:
    with pytest.raises(Failed, match="did you mean Compiler"):
        pick("compilr", [{"name": "Compiler"}, {"name": "other"}], "workspace", "codehub ws ls")
