"""Request pages with wrk if it is installed, otherwise with the slower load generator."""

import asyncio
import re
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.api.load_generator import TIMEOUT_SECONDS, BadResponse, Target, send_requests
from benchmarks.report import percentile

UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}
PERCENTS = ("50", "99")
LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m) *$", re.MULTILINE)
REQUESTS = re.compile(r"^\s+(\d+) requests in ([\d.]+)(ms|s|m),", re.MULTILINE)
FAULTS = re.compile(r"^\s+(Non-2xx or 3xx responses: .*|Socket errors: .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The number of responses or messages in a time, and their latency in µs, if known."""

    count: int
    seconds: float
    p50: float | None = None
    p99: float | None = None


async def load_pages(target: Target, connections: int, seconds: int) -> Outcome:
    wrk = shutil.which("wrk")
    if wrk is None:
        return await _load_without_wrk(target, connections, seconds)
    headers = [word for name, value in target.headers.items() for word in ("-H", f"{name}: {value}")]
    command = (wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "--latency", *headers)
    return parse_wrk_output(await _output_of(*command, f"http://127.0.0.1:{target.port}{target.path}"))


def parse_wrk_output(output: str) -> Outcome:
    """Parse the output of wrk; raise BadResponse if a request failed."""
    if fault := FAULTS.search(output):
        raise BadResponse(fault[1])
    found = REQUESTS.search(output)
    times = {percent: float(number) * UNITS[unit] for percent, number, unit in LATENCY.findall(output)}
    if found is None or len(times) < len(PERCENTS):
        raise BadResponse(f"unexpected output of wrk: {output}")
    count, time, unit = found.groups()
    return Outcome(int(count), float(time) * UNITS[unit] / UNITS["s"], *(times[each] for each in PERCENTS))


async def _load_without_wrk(target: Target, connections: int, seconds: int) -> Outcome:
    responses = await send_requests(target, connections, seconds)
    p50, p99 = latencies(responses.seconds)
    return Outcome(len(responses.seconds), responses.wall_seconds, p50, p99)


def latencies(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile in µs."""
    return statistics.median(seconds) * UNITS["s"], percentile([*seconds, seconds[-1]], 99) * UNITS["s"]


async def _output_of(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace")
