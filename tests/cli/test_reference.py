"""The reference page, the help and the exit codes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.schemas.errors import Code
from cli.errors import API_EXIT_CODES, EXIT_CODE_HELP, ExitCode
from cli.main import COMMANDS, app
from cli.reference import render

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "docs/cli.md is out of date: run make docs"


def test_the_page_does_not_depend_on_environment_or_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    here = render()
    for name, value in {"COLUMNS": "20", "CODEHUB_URL": "elsewhere", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert render() == here


def test_every_command_is_on_the_page() -> None:
    assert [name for name in COMMANDS if f"\n## codehub {name}\n" not in render()] == []


def test_every_error_code_of_the_api_has_an_exit_code() -> None:
    assert set(API_EXIT_CODES) == set(Code)


@pytest.mark.parametrize("group", ["ws", "token", "admin"])
def test_the_help_lists_the_exit_codes(group: str) -> None:
    output = CliRunner().invoke(app, (group, "--help"), env={"COLUMNS": "150"}).output
    assert [code for code in ExitCode if f"- {code.value}: {EXIT_CODE_HELP[code]}" not in output] == []


def test_an_unknown_command_gets_a_suggestion() -> None:
    result = CliRunner().invoke(app, ("stauts",))
    assert result.exit_code == ExitCode.USAGE
    assert "Did you mean 'status'?" in result.output
