"""The command line that the benchmarks share."""

import argparse
import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

from benchmarks.report import Report

Size = TypeVar("Size")
Benchmark = Callable[[Size, Sequence[str], Report], Coroutine[None, None, None]]


def run_command(
    name: str, description: str | None, parts: Sequence[str], sizes: tuple[Size, Size], run: Benchmark[Size]
) -> None:
    """Measure the requested parts; `sizes` are those of a full and of a quick run."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument(
        "parts", nargs="*", choices=[*parts, []], help="what to measure (default: everything)"
    )
    add_common_arguments(parser)
    arguments = parser.parse_args()
    full, quick = sizes
    report = Report(arguments.json)
    run_benchmark(run(quick if arguments.quick else full, arguments.parts or list(parts), report))
    report.finish()


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="run a small version, to try it out")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")


def run_benchmark(benchmark: Coroutine[None, None, None]) -> None:
    """Run it; clean up after SIGTERM as after Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asyncio.run(benchmark)
