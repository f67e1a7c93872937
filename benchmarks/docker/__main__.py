"""`python -m benchmarks.docker`: starting and stopping containers, beside the bare engine and JupyterHub."""

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version

from benchmarks.docker.bare import BareEngine, OurAdapter
from benchmarks.docker.codehub import codehub
from benchmarks.docker.jupyterhub import jupyterhub
from benchmarks.docker.results import (
    ADAPTER,
    BARE,
    HUB,
    OURS,
    crowd_section,
    parts_section,
    single_section,
)
from benchmarks.docker.runner import Game
from benchmarks.docker.testbed import IMAGES, Contestant, Ground, open_ground
from benchmarks.proxy.testbed import CannotRun
from benchmarks.report import Report, Section
from benchmarks.servers import run_to_the_end

LEGEND = (
    "The same images, network, volumes, limits and confinement for everybody; in turns, each alone.",
    "bare Docker: create and start until the health endpoint answers; stop and rm.",
    "our adapter alone: what CodeHub's activities call. CodeHub: from PATCH to the settled row.",
    "JupyterHub: from POST or DELETE to its answer or last event, with its own proxy and waiting times.",
    "beyond, x bare: medians of each round's difference and ratio.",
)


@dataclass
class Cast:
    """Who takes part, and in which versions."""

    contestants: dict[str, Contestant] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.docker", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="fewer if four minutes are over before (15)")
    parser.add_argument("--at-once", type=int, default=20, help="workspaces that are started together (20)")
    parser.add_argument("--crowds", type=int, default=2, help="how often that is done (2)")
    parser.add_argument("--quick", action="store_true", help="2 rounds, 4 at once: for trying it out")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.at_once, arguments.crowds = 2, 4, 1
    report = Report(arguments.json)
    run_to_the_end(run(arguments, report))
    report.finish()


async def run(arguments: argparse.Namespace, report: Report) -> None:
    async with open_ground() as ground, _cast(ground, report) as cast:
        game = Game(cast.contestants, report)
        await game.play_alone(arguments.rounds)
        for image in IMAGES:
            report.add(single_section(image, game.results))
        report.add(parts_section(list(IMAGES), game.results))
        await game.play_at_once(arguments.at_once, arguments.crowds)
        for image in IMAGES:
            report.add(crowd_section(image, game.results))
    report.add(Section("Contestants", ("", "version"), list(cast.versions.items()), LEGEND))


@asynccontextmanager
async def _cast(ground: Ground, report: Report) -> AsyncIterator[Cast]:
    """Everybody at once, so that they can take turns; who cannot be had is left out, with the reason."""
    bare = BareEngine(ground, ground.options("bare"))
    cast = Cast({BARE: bare, ADAPTER: OurAdapter(ground, ground.options("adapter"))})
    engine = await ground.engine.version()
    cast.versions[BARE] = f"engine {engine['Version']}, aiodocker {version('aiodocker')}"
    async with AsyncExitStack() as stack:
        report.say("starting CodeHub")
        cast.contestants[OURS] = await stack.enter_async_context(codehub(ground))
        cast.versions[OURS] = f"{version('codehub')}, temporalio {version('temporalio')}"
        report.say("installing JupyterHub")
        try:
            hub = await stack.enter_async_context(jupyterhub(ground))
        except CannotRun as error:
            report.say(f"without JupyterHub: {error}")
        else:
            cast.contestants[HUB], cast.versions[HUB] = hub, hub.versions
        yield cast


if __name__ == "__main__":
    main()
