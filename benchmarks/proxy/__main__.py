"""`python -m benchmarks.proxy`: our proxy beside nginx and others, in turns, each alone on one core."""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.proxy.contestants import CONTESTANTS, DEFAULT, contestants, upstreams
from benchmarks.proxy.plot import plot
from benchmarks.proxy.results import Results, goals_section, memory_section, section_of
from benchmarks.proxy.runner import Game, raise_file_limit
from benchmarks.proxy.testbed import OTHER_CORES
from benchmarks.proxy.workloads import WORKLOADS
from benchmarks.report import Report, Section
from benchmarks.servers import run_to_the_end

LEGEND = (
    "Medians of the rounds; x nginx: the median of each round's ratio. CPU: all processes of the contestant.",
    "busy: of its core; well below 100, the load, the upstream or other people's work was the limit.",
    "One core for the contestant, with one worker or thread (GOMAXPROCS=1); the load, the upstream and our",
    "servers have the others. Only ours checks a session and strips a prefix; nginx-auth asks itself over a",
    "connection and says yes at once: who decides is on the contestant's core, as with ours.",
    "direct: nothing between. nginx-64k: nginx with buffers of 64 KB. chp: configurable-http-proxy.",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.proxy", description=__doc__)
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement (2)")
    parser.add_argument("--rounds", type=int, default=3, help="fewer if eight minutes are over before (3)")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=DEFAULT, help="some contestants")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all figures")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="where to draw requests and CPU")
    arguments = parser.parse_args()
    run_to_the_end(run(arguments))


async def run(arguments: argparse.Namespace) -> None:
    raise_file_limit()
    os.sched_setaffinity(0, OTHER_CORES)
    began, report = time.monotonic(), Report(as_json=False)
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        async with (
            upstreams(Path(directory)) as stage,
            contestants(stage, arguments.only, report) as everybody,
        ):
            game = Game(stage, everybody, arguments.seconds, report)
            results = await game.play(arguments.rounds, began)
    versions = {name: each.version for name, each in everybody.items()}
    _tell(results, versions, report)
    if arguments.json:
        arguments.json.write_text(_document(results, versions, report))
    if arguments.plot:
        arguments.plot.write_text(plot(results))


def _tell(results: Results, versions: Mapping[str, str], report: Report) -> None:
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
