"""`python -m benchmarks.api`: what the API can do, beside JupyterHub's, and how soon live events arrive."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.api.events import EventSize, measure_events
from benchmarks.api.jupyterhub import CannotInstall, JupyterHub, jupyterhub
from benchmarks.api.population import Population, api_of, populate
from benchmarks.api.requests import measure_requests
from benchmarks.command_line import run_command
from benchmarks.report import Report
from benchmarks.servers import real_deployment
from testkit.deployment import Deployment

PARTS = ("requests", "events")


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    workspaces: int
    of_the_caller: int
    users: int
    rounds: int
    seconds: float
    events: EventSize


FULL = Size(10_000, 500, 100, 3, 1.2, EventSize(1_000, 100, 20))
QUICK = Size(1_000, 100, 10, 1, 0.5, EventSize(50, 20, 3))


async def run(size: Size, parts: Sequence[str], report: Report) -> None:
    async with real_deployment() as deployment:
        report.say(f"{size.workspaces} workspaces")
        people = await populate(deployment, size.workspaces, size.of_the_caller, size.users)
        if "requests" in parts:
            await _requests(deployment, people, size, report)
        if "events" in parts:
            # A fresh process: what requests have left in its memory would hide what clients take.
            async with api_of(deployment) as api:
                await measure_events(deployment, api, people.others, size.events, report)


async def _requests(deployment: Deployment, people: Population, size: Size, report: Report) -> None:
    async with _hub(size.workspaces, report) as hub, api_of(deployment) as api:
        await measure_requests(api, people, hub, rounds=size.rounds, seconds=size.seconds, report=report)


@asynccontextmanager
async def _hub(users: int, report: Report) -> AsyncIterator[JupyterHub | None]:
    """None, with the reason told, if it cannot be had."""
    report.say("installing JupyterHub")
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        async with AsyncExitStack() as stack:
            try:
                hub = await stack.enter_async_context(jupyterhub(Path(directory), users))
            except CannotInstall as error:
                report.say(str(error))
                hub = None
            yield hub


if __name__ == "__main__":
    run_command("benchmarks.api", __doc__, PARTS, (FULL, QUICK), run)
