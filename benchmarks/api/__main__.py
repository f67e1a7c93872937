"""`python -m benchmarks.api`: requests compared with JupyterHub, and the delay of live events."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.api.events import EventSize, measure_events
from benchmarks.api.jupyterhub import JupyterHub, jupyterhub
from benchmarks.api.population import Population, populate
from benchmarks.api.requests import measure_requests
from benchmarks.command_line import run_command
from benchmarks.peers import Unavailable
from benchmarks.report import Report
from benchmarks.servers import real_deployment, run_api
from testkit.deployment import Deployment

PARTS = ("requests", "events")


@dataclass(frozen=True)
class Size:
    """The extent of a run."""

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
        report.log(f"{size.workspaces} workspaces")
        population = await populate(deployment, size.workspaces, size.of_the_caller, size.users)
        if "requests" in parts:
            await _requests(deployment, population, size, report)
        if "events" in parts:
            # A new process: memory left over from requests would hide what the clients need.
            async with run_api(deployment) as api:
                await measure_events(deployment, api, population.others, size.events, report)


async def _requests(deployment: Deployment, population: Population, size: Size, report: Report) -> None:
    async with _hub(size.workspaces, report) as hub, run_api(deployment) as api:
        await measure_requests(api, population, hub, rounds=size.rounds, seconds=size.seconds, report=report)


@asynccontextmanager
async def _hub(users: int, report: Report) -> AsyncIterator[JupyterHub | None]:
    """Yield a running hub, or None if it cannot be installed here."""
    report.log("installing JupyterHub")
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        async with AsyncExitStack() as stack:
            try:
                hub = await stack.enter_async_context(jupyterhub(Path(directory), users))
            except Unavailable as error:
                report.log(f"without JupyterHub: {error}")
                hub = None
            yield hub


if __name__ == "__main__":
    run_command("benchmarks.api", __doc__, PARTS, (FULL, QUICK), run)
