"""`python -m benchmarks.compression`: the storage job's compression compared with the `zstd` program."""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.command_line import run_command
from benchmarks.compression.filter import LEVEL
from benchmarks.lifecycle.transfers import HomeSize
from benchmarks.report import MEGABYTE, Cell, Report, Section
from benchmarks.resource_usage import SAMPLE_SECONDS
from benchmarks.sample_home import make_home
from codehub.formatting import format_size

FILTER = "benchmarks.compression.filter"
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
PARTS = ("compress", "decompress")
COMMANDS = {
    ("program", "compress"): ("zstd", f"-{LEVEL}", "-T0", "-q", "-c"),
    ("program", "decompress"): ("zstd", "-d", "-q", "-c"),
    ("library", "compress"): (sys.executable, "-m", FILTER, "compress"),
    ("library", "decompress"): (sys.executable, "-m", FILTER, "decompress"),
}


class Size(NamedTuple):
    home: HomeSize
    rounds: int


class Cost(NamedTuple):
    seconds: float
    cpu_seconds: float
    peak_megabytes: float
    written_megabytes: float


def _pack(home: Path, tar: Path) -> None:
    subprocess.run(("tar", "-C", home, "-cf", tar, "."), check=True)  # noqa: S603, S607


def measure(command: Sequence[str], source: Path, target: Path) -> Cost:
    """Run a filter from file to file; return the cost of its process."""
    with source.open("rb") as read, target.open("wb") as written:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=read, stdout=written)  # noqa: S603
        peak = _watch_memory(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"{command[0]} failed: {status}")
    size = target.stat().st_size / MEGABYTE
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak / MEGABYTE, size)


def _watch_memory(pid: int) -> int:
    """Wait for the end; return the peak in bytes. The peak of `wait4` includes Python's, before the exec."""
    peak = 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if found := PEAK.search(Path(f"/proc/{pid}/status").read_text()):
            peak = max(peak, int(found[1]) * 1024)
        time.sleep(SAMPLE_SECONDS)
    return peak


async def run(size: Size, parts: Sequence[str], report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        root = Path(directory)
        content = make_home(root / "home", size.home.files, size.home.total_bytes)
        tar, compressed, output = (root / name for name in ("home.tar", "home.tar.zst", "output"))
        await asyncio.to_thread(_pack, root / "home", tar)
        measure(COMMANDS["program", "compress"], tar, compressed)
        costs: defaultdict[tuple[str, str], list[Cost]] = defaultdict(list)
        for number in range(size.rounds):
            report.log(f"round {number + 1} of {size.rounds}")
            for part in parts:
                source = tar if part == "compress" else compressed
                for how in ("program", "library") if number % 2 == 0 else ("library", "program"):
                    os.sync()
                    costs[how, part].append(measure(COMMANDS[how, part], source, output))
    report.add(_section(costs, parts, content, size.rounds))


def _section(
    costs: dict[tuple[str, str], list[Cost]], parts: Sequence[str], content: int, rounds: int
) -> Section:
    rows: list[Sequence[Cell]] = []
    for part in parts:
        program, library = (_median(costs[how, part]) for how in ("program", "library"))
        for name, old, new in zip(Cost._fields, program, library, strict=True):
            rows.append((f"{part}: {name}", round(old, 2), round(new, 2), f"{new / old:.2f}x"))
    title = f"A home of {format_size(content)} as one tar, medians of {rounds} rounds"
    return Section(title, ("", "program", "library", "library / program"), rows)


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


if __name__ == "__main__":
    sizes = (Size(HomeSize(28_000, 962 * MEGABYTE), 7), Size(HomeSize(3_000, 100 * MEGABYTE), 2))
    run_command("benchmarks.compression", __doc__, PARTS, sizes, run)
