"""Start the contestants, so that they can take turns."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version

from benchmarks.instances.codehub import CodeHub, codehub
from benchmarks.instances.contestants import HUB, OURS, Contestant
from benchmarks.instances.jupyterhub import jupyterhub
from benchmarks.instances.jupyterhub_setup import Spawner
from benchmarks.peers import Unavailable
from benchmarks.report import Report, Section
from benchmarks.servers import run_worker


@dataclass
class Contestants:
    """The contestants and their versions, by name."""

    contestants: dict[str, Contestant] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, contestant: Contestant, version: str) -> None:
        self.contestants[name], self.versions[name] = contestant, version

    def section(self, legend: Sequence[str]) -> Section:
        return Section("Contestants", ("", "version"), list(self.versions.items()), legend)


async def enter_codehub(
    stack: AsyncExitStack, environment: Mapping[str, str], found: Contestants, report: Report
) -> CodeHub:
    """Run a CodeHub with a worker until the end of the stack, and add it."""
    report.log("starting CodeHub")
    ours = await stack.enter_async_context(codehub(environment))
    await stack.enter_async_context(run_worker(ours.deployment))
    found.add(OURS, ours, f"{version('codehub')}, temporalio {version('temporalio')}")
    return ours


async def enter_jupyterhub(
    stack: AsyncExitStack, spawner: Spawner, found: Contestants, report: Report
) -> None:
    """Run a JupyterHub until the end of the stack, and add it; skip it where it is unavailable."""
    report.log("installing JupyterHub")
    try:
        hub = await stack.enter_async_context(jupyterhub(spawner))
    except Unavailable as error:
        report.log(f"without JupyterHub: {error}")
    else:
        found.add(HUB, hub, hub.versions)
