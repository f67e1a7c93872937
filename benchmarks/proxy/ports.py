"""`python -m benchmarks.proxy.ports`: the way to a port of a workspace compared with the way to its IDE."""

import argparse
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.api.load_generator import Target
from benchmarks.command_line import run_benchmark
from benchmarks.proxy.codehub import ours
from benchmarks.proxy.contestants import upstreams
from benchmarks.proxy.http_load import load_pages
from benchmarks.proxy.runner import raise_file_limit
from benchmarks.proxy.testbed import OTHER_CORES, Contestant, Testbed
from benchmarks.proxy.upstream import LARGE, SMALL
from benchmarks.proxy.workloads import LARGE_PAGES, MANY, MICROSECONDS, ONE, cpu_seconds
from benchmarks.report import Report, Section

IDE, PORT = "IDE", "port"
LOADS = {ONE: (SMALL, 1), MANY: (SMALL, 32), LARGE_PAGES: (LARGE, 8)}
LEGEND = (
    "Medians of the rounds; ratio: the median of each round's ratio. The proxy has one core; the load, the",
    "upstream and the agent share the others, so with two cores in all the agent takes time from the load.",
    "CPU of the proxy, in µs per request. Both ways end at the same upstream: the IDE's at its UNIX socket,",
    "the port's at its TCP port on loopback, through the agent.",
)


@dataclass(frozen=True)
class Measurement:
    """What one load has got from one way."""

    rate: float
    p50: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.proxy.ports", description=__doc__)
    parser.add_argument("--seconds", type=int, default=2, help="duration of each measurement (2)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each way is measured (5)")
    arguments = parser.parse_args()
    run_benchmark(run(arguments))


async def run(arguments: argparse.Namespace) -> None:
    raise_file_limit()
    os.sched_setaffinity(0, OTHER_CORES)
    report = Report(as_json=False)
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        async with upstreams(Path(directory)) as testbed, ours(testbed, with_ports=True) as proxy:
            rounds: dict[str, list[Mapping[str, Measurement]]] = {title: [] for title in LOADS}
            for number in range(1, arguments.rounds + 1):
                report.log(f"round {number} of {arguments.rounds}")
                for title, (name, connections) in LOADS.items():
                    ways = targets(testbed, proxy, name)
                    rounds[title].append({
                        way: await measure(ways[way], proxy, connections, arguments.seconds) for way in ways
                    })  # fmt: skip
    rows = [row for title in LOADS for row in rows_of(title, rounds[title])]
    report.add(
        Section("Ports", ("", "way", "requests/s", "p50 µs", "CPU µs", "ratio of requests/s"), rows, LEGEND)
    )
    report.finish()


def targets(testbed: Testbed, proxy: Contestant, name: str) -> Mapping[str, Target]:
    ide = testbed.page(proxy.pages_port, name)
    headers = testbed.browsers[0].headers(testbed.port_label, proxy.pages_port)
    return {IDE: ide, PORT: replace(ide, headers=headers)}


async def measure(target: Target, proxy: Contestant, connections: int, seconds: int) -> Measurement:
    before = cpu_seconds(proxy)
    outcome = await load_pages(target, connections, seconds)
    cpu = (cpu_seconds(proxy) - before) / outcome.count * MICROSECONDS
    return Measurement(outcome.count / outcome.seconds, outcome.p50 or 0.0, cpu)


def rows_of(title: str, rounds: Sequence[Mapping[str, Measurement]]) -> list[tuple[str | float, ...]]:
    ratio = statistics.median(each[PORT].rate / each[IDE].rate for each in rounds)
    rows: list[tuple[str | float, ...]] = []
    for way in (IDE, PORT):
        rate, p50, cpu = (
            statistics.median(getattr(each[way], name) for each in rounds) for name in ("rate", "p50", "cpu")
        )
        shown = f"{ratio:.2f}" if way == PORT else ""
        rows.append((title, way, round(rate), round(p50), round(cpu, 1), shown))
    return rows


if __name__ == "__main__":
    main()
