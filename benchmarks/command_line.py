"""The command line that the benchmarks share."""

import argparse
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

from benchmarks.report import Report
from benchmarks.servers import run_to_the_end

Size = TypeVar("Size")
Benchmark = Callable[[Size, Sequence[str], Report], Coroutine[None, None, None]]


def run_command(
    name: str, description: str | None, parts: Sequence[str], sizes: tuple[Size, Size], run: Benchmark[Size]
) -> None:
    """Measure what was asked for, in full or, with `--quick`, small; `sizes` are these two."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="what to measure; everything if none")
    parser.add_argument("--quick", action="store_true", help="a small version, for trying it out")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    arguments = parser.parse_args()
    full, quick = sizes
    report = Report(arguments.json)
    run_to_the_end(run(quick if arguments.quick else full, arguments.parts or list(parts), report))
    report.finish()
