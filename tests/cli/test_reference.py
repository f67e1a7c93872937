"""What the command line says of itself: its page, its help, its exit codes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.schemas.errors import Code
from cli.errors import MEANINGS, OF_PROBLEM, ExitCode
from cli.main import COMMANDS, app
from cli.reference import render

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "docs/cli.md is out of date: run make docs"


def test_the_page_depends_on_neither_environment_nor_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    here = render()
    for name, value in {"COLUMNS": "20", "CODEHUB_URL": "elsewhere", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert render() == here


def test_every_command_is_on_the_page() -> None:
    assert [name for name in COMMANDS if f"\n## codehub {name}\n" not in render()] == []


def test_every_error_of_the_api_has_an_exit_code() -> None:
    assert set(OF_PROBLEM) == set(Code)


@pytest.mark.parametrize("group", ["ws", "token", "admin"])
def test_exit_codes_are_told_by_help(group: str) -> None:
    said = CliRunner().invoke(app, (group, "--help"), env={"COLUMNS": "150"}).output
    assert [code for code in ExitCode if f"- {code.value}: {MEANINGS[code]}" not in said] == []


def test_a_command_that_does_not_exist_is_guessed() -> None:
    result = CliRunner().invoke(app, ("stauts",))
    assert result.exit_code == ExitCode.USAGE
    assert "Did you mean 'status'?" in result.output
