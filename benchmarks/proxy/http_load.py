"""Requests for pages: by wrk where it is installed, else by our own client, which is slower."""

import asyncio
import re
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.api.load_generator import LONGEST_SECONDS, Refused, Target, ask_for
from benchmarks.report import percentile

UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}
PERCENTS = ("50", "99")
LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m) *$", re.MULTILINE)
REQUESTS = re.compile(r"^\s+(\d+) requests in ([\d.]+)(ms|s|m),", re.MULTILINE)
FAULTS = re.compile(r"^\s+(Non-2xx or 3xx responses: .*|Socket errors: .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How many answers or messages came in what time; how long each took, if it is known, in µs."""

    count: int
    seconds: float
    p50: float | None = None
    p99: float | None = None


async def ask_for_pages(target: Target, connections: int, seconds: int) -> Outcome:
    wrk = shutil.which("wrk")
    if wrk is None:
        return await _ask_ourselves(target, connections, seconds)
    headers = [word for name, value in target.headers.items() for word in ("-H", f"{name}: {value}")]
    command = (wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "--latency", *headers)
    return read_wrk(await _output_of(*command, f"http://127.0.0.1:{target.port}{target.path}"))


def read_wrk(output: str) -> Outcome:
    """What wrk says, or Refused if anything went wrong."""
    if fault := FAULTS.search(output):
        raise Refused(fault[1])
    found = REQUESTS.search(output)
    times = {percent: float(number) * UNITS[unit] for percent, number, unit in LATENCY.findall(output)}
    if found is None or len(times) < len(PERCENTS):
        raise Refused(f"wrk said: {output}")
    count, time, unit = found.groups()
    return Outcome(int(count), float(time) * UNITS[unit] / UNITS["s"], *(times[each] for each in PERCENTS))


async def _ask_ourselves(target: Target, connections: int, seconds: int) -> Outcome:
    answers = await ask_for(target, connections, seconds)
    p50, p99 = in_microseconds(answers.seconds)
    return Outcome(len(answers.seconds), answers.wall_seconds, p50, p99)


def in_microseconds(seconds: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    return statistics.median(seconds) * UNITS["s"], percentile([*seconds, seconds[-1]], 99) * UNITS["s"]


async def _output_of(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace")
