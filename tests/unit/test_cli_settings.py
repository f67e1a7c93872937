"""`codehub settings`: the table, the JSON, the documentation page and the errors."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main
from codehub.settings import VARIABLES

CONFIGURATION_PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
MUST_NOT_APPEAR = "hunter2"
WITH_SECRETS = {
    "CODEHUB_DATABASE_URL": f"postgresql://codehub:{MUST_NOT_APPEAR}@database/codehub",
    "CODEHUB_S3_ENDPOINT_URL": "https://s3.example",
    "CODEHUB_S3_ACCESS_KEY": "codehub",
    "CODEHUB_S3_SECRET_KEY": MUST_NOT_APPEAR,
}


@dataclass(frozen=True)
class Result:
    exit_code: object
    stdout: str
    stderr: str

    def cells_of(self, variable: str) -> list[str]:
        (line,) = (line for line in self.stdout.splitlines() if line.startswith(f"{variable} "))
        return line.split()[1:]


Run = Callable[..., Result]


@pytest.fixture
def codehub(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process with only the given settings."""
    for name in os.environ:
        if name.startswith(("CODEHUB_", "TTL_", "FORCE_COLOR", "TTY_")):
            monkeypatch.delenv(name)

    def run(*arguments: str, columns: int = 80, **environment: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["codehub", *arguments])
        for name, value in {"COLUMNS": str(columns), **environment}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as stopped:
            main()
        output = capsys.readouterr()
        return Result(stopped.value.code, output.out, output.err)

    return run


def test_the_table_shows_each_value_and_its_source(codehub: Run) -> None:
    result = codehub("settings", TTL_STANDBY_SECONDS="10800")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.cells_of("TTL_STANDBY_SECONDS") == ["10800", "environment"]
    assert result.cells_of("TTL_ARCHIVE_SECONDS") == ["1800", "default"]
    assert result.cells_of("CODEHUB_DATABASE_URL") == ["unset", "default"]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_defaults_fit_on_one_line_each(codehub: Run, columns: int) -> None:
    result = codehub("settings", columns=columns)
    assert [len(result.cells_of(variable.name)) for variable in VARIABLES] == [2] * len(VARIABLES)
    assert max(len(line) for line in result.stdout.splitlines()) <= columns


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_no_output_contains_a_secret(codehub: Run, option: list[str]) -> None:
    result = codehub("settings", *option, columns=120, **WITH_SECRETS)
    assert "********" in result.stdout
    assert "postgresql://codehub:********@database/codehub" in result.stdout
    assert MUST_NOT_APPEAR not in result.stdout + result.stderr


def test_the_json_has_every_variable_with_value_and_source(codehub: Run) -> None:
    values = json.loads(codehub("settings", "--json", CODEHUB_API_PORT="9000").stdout)
    assert list(values) == [variable.name for variable in VARIABLES]
    assert values["CODEHUB_API_PORT"] == {"value": 9000, "source": "environment"}
    assert values["CODEHUB_REDIS_URL"] == {"value": None, "source": "default"}


def test_an_unknown_variable_is_a_warning_with_a_suggestion(codehub: Run) -> None:
    result = codehub("settings", "--json", CODEHUB_DATABASE_ULR="x", CODEHUB_XYZZY="x")
    assert result.exit_code == 0
    assert json.loads(result.stdout)
    assert result.stderr.splitlines() == [
        "Warning: unknown variable CODEHUB_DATABASE_ULR; did you mean CODEHUB_DATABASE_URL?",
        "Warning: unknown variable CODEHUB_XYZZY",
    ]


def test_invalid_settings_are_a_message_and_exit_code_2(codehub: Run) -> None:
    result = codehub(
        "settings", CODEHUB_LOG_LEVEL="loud", CODEHUB_DATABASE_URL=f"mysql://codehub:{MUST_NOT_APPEAR}@host"
    )
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "CodeHub is not configured correctly:",
        "  CODEHUB_LOG_LEVEL=loud: must be one of debug, info, warning, error",
        "  CODEHUB_DATABASE_URL=mysql://codehub:********@host: must be a postgresql:// URL",
    ]


def test_the_configuration_page_is_up_to_date(codehub: Run) -> None:
    page = CONFIGURATION_PAGE.read_text(encoding="utf-8")
    assert page == codehub("settings", "--markdown").stdout, (
        "docs/configuration.md is out of date: run make docs"
    )


def test_the_configuration_page_does_not_depend_on_environment_or_terminal(codehub: Run) -> None:
    here = codehub("settings", "--markdown", columns=200).stdout
    elsewhere = codehub("settings", "--markdown", columns=20, CODEHUB_LOG_LEVEL="loud", CODEHUB_XYZZY="x")
    assert elsewhere == Result(0, here, "")
    assert all(f"| `{variable.name}` |" in here for variable in VARIABLES)


def test_the_version_is_printed(codehub: Run) -> None:
    result = codehub("--version")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "codehub")


def test_help_lists_the_commands(codehub: Run) -> None:
    result = codehub("--help")
    assert result.exit_code == 0
    assert "settings" in result.stdout
    assert "up" in result.stdout
