"""A short game day as a whole: real servers, real faults, and a verdict."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.exit_codes import ExitCode
from cli.main import app
from gameday.findings import Invariant
from gameday.options import Options
from gameday.run import run_gameday

SEED = "test"
# What a loaded machine may leave no time for in so short a game.
LUCK = {Invariant.READ_BACK, Invariant.ECHOES, Invariant.ARCHIVE_KEPT, Invariant.FILES}


@pytest.mark.timeout(900)
async def test_a_short_game_day_holds_every_invariant(tmp_path: Path) -> None:
    said: list[str] = []
    options = Options(minutes=0.4, seed=SEED, users=2)
    story = await run_gameday(options, tmp_path, said.append, said.append, asyncio.Event())
    explained = [
        f"{each}\n" + "\n".join(story.histories.get(each.workspace_id or "", ())) for each in story.violations
    ]
    assert story.held, "\n".join(explained)
    assert story.faults
    assert story.lanes
    assert not [each for each in Invariant if each not in LUCK and not story.checked[each]]


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
