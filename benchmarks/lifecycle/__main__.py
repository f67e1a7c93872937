"""`python -m benchmarks.lifecycle`: the cost of the control plane and of the storage job."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.command_line import run_command
from benchmarks.lifecycle.overhead import measure_overhead
from benchmarks.lifecycle.sandbox_start import measure_sandbox
from benchmarks.lifecycle.throughput import measure_throughput
from benchmarks.lifecycle.transfers import HomeSize, measure_transfers
from benchmarks.report import MEGABYTE, Report
from benchmarks.servers import real_deployment

PARTS = ("overhead", "sandbox", "throughput", "transfers")


@dataclass(frozen=True)
class Size:
    """The extent of a run."""

    overhead_rounds: int
    workspaces: int
    home: HomeSize
    transfer_rounds: int


FULL = Size(40, 500, HomeSize(28_000, 962 * MEGABYTE), 5)
QUICK = Size(8, 40, HomeSize(3_000, 100 * MEGABYTE), 2)


async def run(size: Size, parts: Sequence[str], report: Report) -> None:
    """Run each part on new servers, so that no part affects another."""
    if "overhead" in parts:
        async with real_deployment() as deployment:
            await measure_overhead(deployment, size.overhead_rounds, report)
    if "sandbox" in parts:
        await asyncio.to_thread(measure_sandbox, size.overhead_rounds, report)
    if "throughput" in parts:
        async with real_deployment(CODEHUB_LIMITS_MAX_RUNNING_GLOBAL="100000") as deployment:
            await measure_throughput(deployment, size.workspaces, report)
    if "transfers" in parts:
        async with real_deployment() as deployment:
            await measure_transfers(deployment, size.home, size.transfer_rounds, report)


if __name__ == "__main__":
    run_command("benchmarks.lifecycle", __doc__, PARTS, (FULL, QUICK), run)
