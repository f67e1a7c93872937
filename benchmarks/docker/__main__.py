"""`python -m benchmarks.docker`: starting and stopping containers, with bare Docker and JupyterHub."""

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version

from benchmarks.command_line import add_common_arguments, run_benchmark
from benchmarks.docker.bare import LAUNCH, BareEngine, OurAdapter
from benchmarks.docker.spawner import docker_spawner
from benchmarks.docker.testbed import IMAGES, Testbed, open_testbed
from benchmarks.instances.contestants import ADAPTER, BARE
from benchmarks.instances.entry import Contestants, enter_codehub, enter_jupyterhub
from benchmarks.instances.results import (
    Results,
    burst_section,
    figure,
    overhead_remarks,
    parts_section,
    single_section,
)
from benchmarks.instances.runner import Runner
from benchmarks.report import Report
from codehub.domain.states import Operation

LEGEND = (
    "All use the same images, network, volumes, limits and confinement, and take turns, each alone.",
    "bare: create and start until the health endpoint responds; stop and rm.",
    "our adapter alone: what CodeHub's activities call. CodeHub: from PATCH to the settled row.",
    "JupyterHub: from POST or DELETE to its response or last event, with its own proxy and delays.",
    "overhead, x bare: medians of each round's difference and ratio.",
)


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
        runner = Runner(found.contestants, IMAGES, report)
        await runner.run_alone(arguments.rounds)
        for image in IMAGES:
            remarks = [_launch_remark(image, runner.results), *overhead_remarks(image, runner.results)]
            report.add(single_section(image, runner.results, remarks))
        report.add(parts_section(list(IMAGES), runner.results))
        await runner.run_bursts(arguments.at_once, arguments.bursts)
        for image in IMAGES:
            report.add(burst_section(image, runner.results))
    report.add(found.section(LEGEND))


def _launch_remark(image: str, results: Results) -> str:
    launches = results.parts[(image, BARE, Operation.STARTING), LAUNCH]
    return f"bare until {LAUNCH}: {figure(launches, 50)} ms p50, {figure(launches, 90)} ms p90"


@asynccontextmanager
async def _open_contestants(testbed: Testbed, report: Report) -> AsyncIterator[Contestants]:
    """Start all contestants, so that they can take turns; skip those that are unavailable."""
    found = Contestants()
    engine = await testbed.engine.version()
    bare_version = f"engine {engine['Version']}, aiodocker {version('aiodocker')}"
    found.add(BARE, BareEngine(testbed, testbed.options("bare")), bare_version)
    found.contestants[ADAPTER] = OurAdapter(testbed, testbed.options("adapter"))
    async with AsyncExitStack() as stack:
        await enter_codehub(stack, testbed.environment("ours"), found, report)
        await enter_jupyterhub(stack, docker_spawner(testbed), found, report)
        yield found


if __name__ == "__main__":
    main()
