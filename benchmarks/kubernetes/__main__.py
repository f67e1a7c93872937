"""`python -m benchmarks.kubernetes`: starting and stopping Pods, with the API, kubectl and JupyterHub."""

import argparse
import sys
from contextlib import AsyncExitStack

from benchmarks.command_line import add_common_arguments, run_benchmark
from benchmarks.instances.contestants import BARE, HUB, OURS
from benchmarks.instances.entry import Contestants, enter_codehub, enter_jupyterhub
from benchmarks.instances.results import burst_section, parts_section, single_section
from benchmarks.instances.runner import Runner, TimeLimits
from benchmarks.kubernetes.bare import add_bare
from benchmarks.kubernetes.calls import CallCounter
from benchmarks.kubernetes.pod_times import Observed
from benchmarks.kubernetes.results import calls_section, hub_remarks, share_section
from benchmarks.kubernetes.spawner import hub_pod, kube_spawner
from benchmarks.kubernetes.testbed import ACCOUNTS, IMAGES, open_testbed
from benchmarks.report import Report
from codehub.domain.naming import container_name
from testkit.kubernetes import binaries

# On a quiet machine a round takes 25 seconds.
ROUND_SECONDS = 40
LEGEND = (
    "All use the same image, limits, confinement and kind of claim, and take turns, each alone.",
    "bare: the API creates the same Pod, and a watch waits until it is ready; delete, and wait until gone.",
    "kubectl: create, wait, delete. CodeHub: from PATCH to the settled row.",
    "JupyterHub: from POST or DELETE to its response or last event; its Pods have no readiness probe.",
    "before, cluster, after: until the cluster is asked; until it is done; until the contestant says so.",
    "overhead, x bare: medians of each round's difference and ratio.",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.kubernetes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of starting and stopping one (5)")
    parser.add_argument("--at-once", type=int, default=50, help="workspaces to start at once (50)")
    parser.add_argument("--kubectl", action="store_true", help="also measure kubectl, which takes its time")
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
    limits = TimeLimits(single=ROUND_SECONDS * arguments.rounds)
    async with AsyncExitStack() as stack:
        testbed = await stack.enter_async_context(open_testbed())
        found = Contestants()
        pod_names = add_bare(found, testbed, with_kubectl=arguments.kubectl)
        ours = await enter_codehub(stack, testbed.environment, found, report)
        await enter_jupyterhub(stack, kube_spawner(testbed), found, report)
        pod_names |= {OURS: lambda *key: container_name(ours.workspaces[key]), HUB: hub_pod}
        observed = {
            name: Observed(contestant, testbed.pods, pod_names[name])
            for name, contestant in found.contestants.items()
        }
        counter = CallCounter(testbed.calls, ACCOUNTS, ours.deployment)
        runner = Runner(observed, IMAGES, report, limits)
        await measure(runner, counter, arguments)
    report.add(found.section(LEGEND))


async def measure(runner: Runner, counter: CallCounter, arguments: argparse.Namespace) -> None:
    """Run one workspace after another, then many at once, and report each result."""
    await runner.run_alone(arguments.rounds, counter.around(1))
    for image in IMAGES:
        runner.report.add(single_section(image, runner.results, hub_remarks(image, runner.results)))
        runner.report.add(share_section(image, runner.results))
    runner.report.add(parts_section(list(IMAGES), runner.results))
    await runner.run_bursts(arguments.at_once, 1, (BARE, OURS), counter.around(arguments.at_once))
    for image in IMAGES:
        runner.report.add(burst_section(image, runner.results))
    runner.report.add(calls_section(counter))


if __name__ == "__main__":
    main()
