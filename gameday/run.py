"""Run one game from the first process to the result."""

import asyncio
import platform
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from aiodocker import DockerError
from sqlalchemy.exc import SQLAlchemyError
from temporalio.service import RPCError

from codehub.adapters.temporal.connection import temporal_version
from codehub.db.session import DatabaseUnavailable, server_version
from codehub.domain.failures import Failure
from gameday.checks.findings import Invariant
from gameday.checks.rows import read_rows, read_trails
from gameday.game import Game, Say
from gameday.options import Options
from gameday.report.lanes import Lane, make_history, make_lane
from gameday.report.result import GameResult
from gameday.stage.stage import Stage, open_stage

OUTAGES = (DatabaseUnavailable, SQLAlchemyError, RPCError, Failure, DockerError, OSError)


async def run_gameday(
    options: Options, directory: Path, say: Say, show: Say, stop: asyncio.Event
) -> GameResult:
    """Play a game and return its result, incomplete if it was stopped."""
    say(f"Starting a CodeHub for this game (seed {options.seed}) ...")
    async with open_stage(directory, options.backend, options.users, options.cluster) as stage:
        game = Game(stage, options)
        playing = asyncio.create_task(game.play(say, show))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not playing.done():
            say("Stopping ...")
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
        else:
            playing.result()
        return await collect_result(game)


async def collect_result(game: Game) -> GameResult:
    """Return the result; without histories if the game was stopped during an outage."""
    stage = game.stage
    began = datetime.now(UTC) - timedelta(seconds=stage.clock())
    lanes: list[Lane] = []
    histories: dict[str, tuple[str, ...]] = {}
    versions = {"CodeHub": version("codehub"), "Python": platform.python_version()}
    try:
        versions |= await _server_versions(stage)
        rows = await read_rows(stage.database)
        trails = await read_trails(stage.database, [row.workspace_id for row in rows])
        end = stage.clock()
        lanes = [make_lane(row.workspace_id, row.name, trails[row.workspace_id], began, end) for row in rows]
        broken = {each.workspace_id for each in game.findings.violations}
        histories = {
            each: make_history(trail, game.faults, began) for each, trail in trails.items() if each in broken
        }
    except OUTAGES as error:
        game.remarks.append(f"The histories could not be read: {error}")
    return GameResult(
        options=game.options,
        began=began,
        seconds=stage.clock(),
        faults_ended=game.faults_ended,
        versions=versions,
        faults=tuple(game.faults),
        recoveries=tuple(stage.recoveries),
        lanes=tuple(lanes),
        tally=dict(sorted(game.tally.items())),
        checked={each: game.findings.checked[each] for each in Invariant},
        violations=tuple(game.findings.violations),
        histories=histories,
        remarks=tuple(game.remarks),
        complete=game.is_complete,
    )


async def _server_versions(stage: Stage) -> dict[str, str]:
    return {
        "PostgreSQL": await server_version(stage.database),
        "Temporal": await temporal_version(stage.client),
        "Linux": platform.release(),
        **await stage.backend.versions(),
    }
