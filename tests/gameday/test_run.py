"""A game that is stopped; `make gameday` plays complete ones."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from gameday.options import Options
from gameday.run import run_gameday

SEED = "test"


@pytest.mark.timeout(300)
async def test_a_stopped_game_returns_a_result_that_proves_nothing(tmp_path: Path) -> None:
    stop = asyncio.Event()

    def say(text: str) -> None:
        if text.startswith("Breaking"):
            stop.set()

    options = Options(minutes=60, seed=SEED, users=1)
    result = await run_gameday(options, tmp_path, say, say, stop)
    assert not result.held
    assert not result.violations
    assert "proves nothing" in result.verdict


def test_an_unknown_backend_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["gameday", "--backend", "cloud"])
    assert result.exit_code == ExitCode.USAGE
    assert "local-docker" in result.output


@pytest.mark.parametrize("arguments", [["--backend", "k8s"], ["--cluster", "true"]])
def test_a_cluster_needs_a_program_that_operates_it(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["gameday", *arguments])
    assert result.exit_code == ExitCode.USAGE
    assert "--cluster" in result.output


def test_a_program_without_a_cluster_is_reported_in_one_sentence() -> None:
    result = CliRunner().invoke(app, ["gameday", "--backend", "k8s", "--cluster", "true"])
    assert result.exit_code == ExitCode.FAILED
    assert "No cluster runs" in result.output


def test_the_command_of_a_game_names_its_cluster() -> None:
    options = Options(minutes=1, seed=SEED, backend="k8s", cluster="python -m testkit.kubernetes")
    assert options.command.endswith("--cluster 'python -m testkit.kubernetes'")
