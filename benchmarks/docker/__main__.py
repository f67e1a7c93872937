"""`python -m benchmarks.docker`: starting and stopping containers, with bare Docker and JupyterHub."""

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version

from benchmarks.command_line import add_common_arguments, run_benchmark
from benchmarks.docker.bare import BareEngine, OurAdapter
from benchmarks.docker.codehub import codehub
from benchmarks.docker.jupyterhub import jupyterhub
from benchmarks.docker.results import (
    ADAPTER,
    BARE,
    HUB,
    OURS,
    burst_section,
    parts_section,
    single_section,
)
from benchmarks.docker.runner import Runner
from benchmarks.docker.testbed import IMAGES, Contestant, Testbed, open_testbed
from benchmarks.peers import Unavailable
from benchmarks.report import Report, Section

LEGEND = (
    "All use the same images, network, volumes, limits and confinement, and take turns, each alone.",
    "bare Docker: create and start until the health endpoint responds; stop and rm.",
    "our adapter alone: what CodeHub's activities call. CodeHub: from PATCH to the settled row.",
    "JupyterHub: from POST or DELETE to its response or last event, with its own proxy and delays.",
    "overhead, x bare: medians of each round's difference and ratio.",
)


@dataclass
class Contestants:
    """The contestants and their versions."""

    contestants: dict[str, Contestant] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.docker", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="at most, within four minutes (15)")
    parser.add_argument("--at-once", type=int, default=20, help="workspaces to start at once (20)")
    parser.add_argument("--crowds", dest="bursts", type=int, default=2, help="how often to do that (2)")
    add_common_arguments(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.at_once, arguments.bursts = 2, 4, 1
    report = Report(arguments.json)
    run_benchmark(run(arguments, report))
    report.finish()


async def run(arguments: argparse.Namespace, report: Report) -> None:
    async with open_testbed() as testbed, _open_contestants(testbed, report) as found:
        runner = Runner(found.contestants, report)
        await runner.run_alone(arguments.rounds)
        for image in IMAGES:
            report.add(single_section(image, runner.results))
        report.add(parts_section(list(IMAGES), runner.results))
        await runner.run_bursts(arguments.at_once, arguments.bursts)
        for image in IMAGES:
            report.add(burst_section(image, runner.results))
    report.add(Section("Contestants", ("", "version"), list(found.versions.items()), LEGEND))


@asynccontextmanager
async def _open_contestants(testbed: Testbed, report: Report) -> AsyncIterator[Contestants]:
    """Start all contestants, so that they can take turns; skip those that are unavailable."""
    bare = BareEngine(testbed, testbed.options("bare"))
    found = Contestants({BARE: bare, ADAPTER: OurAdapter(testbed, testbed.options("adapter"))})
    engine = await testbed.engine.version()
    found.versions[BARE] = f"engine {engine['Version']}, aiodocker {version('aiodocker')}"
    async with AsyncExitStack() as stack:
        report.log("starting CodeHub")
        found.contestants[OURS] = await stack.enter_async_context(codehub(testbed))
        found.versions[OURS] = f"{version('codehub')}, temporalio {version('temporalio')}"
        report.log("installing JupyterHub")
        try:
            hub = await stack.enter_async_context(jupyterhub(testbed))
        except Unavailable as error:
            report.log(f"without JupyterHub: {error}")
        else:
            found.contestants[HUB], found.versions[HUB] = hub, hub.versions
        yield found


if __name__ == "__main__":
    main()
