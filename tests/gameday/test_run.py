"""A game that does not come to its end; whole ones are played by `make gameday`."""

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
async def test_a_game_that_is_stopped_tells_what_is_known_and_proves_nothing(tmp_path: Path) -> None:
    stop = asyncio.Event()

    def say(text: str) -> None:
        if text.startswith("Breaking"):
            stop.set()

    options = Options(minutes=60, seed=SEED, users=1)
    story = await run_gameday(options, tmp_path, say, say, stop)
    assert not story.held
    assert not story.violations
    assert "nothing is proven" in story.verdict


def test_a_backend_that_cannot_be_broken_is_a_wrong_usage() -> None:
    answer = CliRunner().invoke(app, ["gameday", "--backend", "k8s"])
    assert answer.exit_code == ExitCode.USAGE
    assert "local-docker" in answer.output
