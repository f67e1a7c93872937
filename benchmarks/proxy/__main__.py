"""`python -m benchmarks.proxy`: CodeHub's proxy compared with nginx and others, each alone on one core."""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.command_line import run_benchmark
from benchmarks.proxy.contestants import CONTESTANTS, DEFAULT, contestants, upstreams
from benchmarks.proxy.plot import plot
from benchmarks.proxy.results import Results, goals_section, memory_section, section_of
from benchmarks.proxy.runner import Runner, raise_file_limit
from benchmarks.proxy.testbed import OTHER_CORES
from benchmarks.proxy.workloads import WORKLOADS
from benchmarks.report import Report, Section

LEGEND = (
    "Medians of the rounds; x nginx: the median of each round's ratio. CPU: all processes of the contestant.",
    "busy: share of its core; well below 100, the load, the upstream or other work was the bottleneck.",
    "One core for the contestant, with one worker or thread (GOMAXPROCS=1); the load, the upstream and the",
    "servers use the others. Only ours checks a session and strips a prefix. nginx-auth calls itself over a",
    "connection and always allows: the decision is made on the contestant's core, as with ours.",
    "direct: without a proxy. nginx-64k: nginx with buffers of 64 KB. chp: configurable-http-proxy.",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.proxy", description=__doc__)
    parser.add_argument("--seconds", type=int, default=2, help="duration of each measurement (2)")
    parser.add_argument("--rounds", type=int, default=3, help="at most, within eight minutes (3)")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=DEFAULT, help="which contestants")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="plot requests and CPU to a file")
    parser.add_argument("--quick", action="store_true", help="one round of one second, to try it out")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds = arguments.rounds = 1
    run_benchmark(run(arguments))


async def run(arguments: argparse.Namespace) -> None:
    raise_file_limit()
    os.sched_setaffinity(0, OTHER_CORES)
    began, report = time.monotonic(), Report(as_json=False)
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        async with (
            upstreams(Path(directory)) as testbed,
            contestants(testbed, arguments.only, report) as running,
        ):
            runner = Runner(testbed, running, arguments.seconds, report)
            results = await runner.run(arguments.rounds, began)
    versions = {name: each.version for name, each in running.items()}
    _add_sections(results, versions, report)
    if arguments.json:
        arguments.json.write_text(_document(results, versions, report))
    if arguments.plot:
        arguments.plot.write_text(plot(results))


def _add_sections(results: Results, versions: Mapping[str, str], report: Report) -> None:
    for workload in WORKLOADS:
        report.add(section_of(workload, results))
    if results.memory:
        report.add(memory_section(results))
    report.add(goals_section(results))
    report.add(Section("Contestants", ("", "version"), list(versions.items()), LEGEND))
    report.finish()


def _document(results: Results, versions: Mapping[str, str], report: Report) -> str:
    figures = [
        {"workload": title, "contestant": name, "rounds": [each and asdict(each) for each in rounds]}
        for (title, name), rounds in results.rounds.items()
    ]
    memory = {name: asdict(each) for name, each in results.memory.items()}
    document = {
        "machine": report.machine(),
        "contestants": versions,
        "figures": figures,
        "memory": memory,
        "sections": [vars(section) for section in report.sections],
    }
    return json.dumps(document, indent=2) + "\n"


if __name__ == "__main__":
    main()
