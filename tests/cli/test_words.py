"""Formatting, names and live events, without a server."""

from datetime import UTC, datetime, timedelta

import pytest

from cli.control_characters import printable
from cli.errors import CommandError
from cli.formatting import parse_duration, round_duration, upcoming
from cli.words import command
from cli.workspace.live_events import Event, parse_events
from cli.workspace.lookup import find_by_name

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("600", 600), ("90s", 90), ("10m", 600), ("10 min", 600), ("2h", 7200), ("7d", 604_800)],
)
def test_a_duration_is_parsed(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "1.5h", "2w", "m"])
def test_an_invalid_duration_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="10m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (-90, "1 min"), (7_200, "2 h"), (200_000, "2 d")]
)
def test_a_duration_is_shown_in_its_largest_unit(seconds: int, words: str) -> None:
    assert round_duration(timedelta(seconds=seconds)) == words


def test_a_near_time_is_shown_in_minutes() -> None:
    assert upcoming((NOW + timedelta(minutes=8)).isoformat(), NOW) == "in 8 min"
    assert upcoming((NOW - timedelta(minutes=8)).isoformat(), NOW) == "now"


def test_a_later_time_is_shown_with_its_day() -> None:
    there = (NOW + timedelta(days=1)).astimezone()
    assert upcoming(there.isoformat(), NOW) == f"tomorrow {there:%H:%M}"
    there = (NOW + timedelta(days=3)).astimezone()
    assert upcoming(there.isoformat(), NOW) == f"on {there:%Y-%m-%d %H:%M}"


def test_events_are_parsed_as_in_a_browser() -> None:
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


def test_control_characters_are_not_printed() -> None:
    assert printable("a\x1b[2Jb\rc\x9bd\te\n") == "a�[2Jb�c�d\te\n"


def test_a_name_with_spaces_is_quoted() -> None:
    assert command("show", {"name": "my notes"}) == "codehub ws show 'my notes'"


def test_a_misspelled_name_gets_a_suggestion() -> None:
    with pytest.raises(CommandError, match=r"Did you mean Compiler\?"):
        find_by_name("compilr", [{"name": "Compiler"}, {"name": "other"}], "workspace", "codehub ws ls")
