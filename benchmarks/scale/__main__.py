"""`python -m benchmarks.scale`: the cost of parked workspaces by their number."""

import argparse
import asyncio
from collections.abc import Sequence

from benchmarks.command_line import add_common_arguments, run_benchmark
from benchmarks.report import Cell, Report, Section, milliseconds
from benchmarks.scale.parked import ARCHIVED, STANDBY, add_parked
from benchmarks.scale.sweeps import Sweeper
from benchmarks.servers import real_deployment, run_worker
from codehub.domain.conditions import Observation, WorkspaceId
from testkit.deployment import Deployment

SIZES = (100, 1_000, 10_000)
QUICK_SIZES = (100, 1_000)
# With the first one, fewer than activities.drift.FULL_CHECK_EVERY, so none of these is a full check.
WARM_SWEEPS = 8
CHANGES = 100
# No sweep runs except those that are measured.
NEVER = str(365 * 24 * 3600)
QUIET = {f"CODEHUB_SWEEPS_{name}_SECONDS": NEVER for name in ("OBSERVE", "TTL", "GC")}
COLUMNS = (
    "parked",
    "open",
    "first ms",
    "rows",
    "warm ms",
    "CPU W",
    "CPU T",
    "CPU P",
    "rows",
    "changed",
    "MB W",
    "MB T",
)
LEGEND = (
    "open: open workflows. first: the full check of a new worker. warm: median of the sweeps after it.",
    "CPU: ms per warm sweep of worker (W), Temporal (T), PostgreSQL (P). MB: resident memory. rows: read",
    f"from workspaces by one sweep. changed: rows read after {CHANGES} workspaces were added.",
)


async def measure(sizes: Sequence[int], facts: Observation, report: Report) -> list[Sequence[Cell]]:
    """Grow one deployment; use a new worker for each size."""
    rows = []
    async with real_deployment(**QUIET) as deployment:
        present = 0
        for size in sizes:
            report.log(f"{size} workspaces")
            await _add(deployment, size - present, facts)
            rows.append(await _measure_at(deployment, size))
            present = size + CHANGES
    return rows


async def _measure_at(deployment: Deployment, size: int) -> Sequence[Cell]:
    async with run_worker(deployment) as process:
        sweeper = Sweeper(deployment, process.pid)
        await sweeper.begin()
        first = await sweeper.cost_of(1)
        warm = await sweeper.cost_of(WARM_SWEEPS)
        # New workspaces in STANDBY since the last sweep, with rows and volumes.
        await _add(deployment, CHANGES, STANDBY)
        changed = await sweeper.cost_of(1)
        memory = sweeper.memory()
        return (
            size,
            await sweeper.open_workflows(),
            milliseconds(first.wall_seconds),
            round(first.rows_read),
            milliseconds(warm.wall_seconds),
            *(milliseconds(warm.cpu[part]) for part in ("worker", "Temporal", "PostgreSQL")),
            round(warm.rows_read),
            round(changed.rows_read),
            *(round(memory[part]) for part in ("worker", "Temporal")),
        )


async def _add(deployment: Deployment, count: int, facts: Observation) -> None:
    added = await add_parked(deployment, count, facts)
    if facts is STANDBY:
        await asyncio.to_thread(_make_volumes, deployment, added)


def _make_volumes(deployment: Deployment, workspace_ids: Sequence[WorkspaceId]) -> None:
    for workspace_id in workspace_ids:
        deployment.home(workspace_id).mkdir()


async def run(sizes: Sequence[int], report: Report) -> None:
    archived = await measure(sizes, ARCHIVED, report)
    report.add(Section("ARCHIVED: only in S3", COLUMNS, archived, LEGEND))
    standby = await measure(sizes, STANDBY, report)
    report.add(Section("STANDBY: with a volume that every sweep lists", COLUMNS, standby, LEGEND))


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__)
    add_common_arguments(parser)
    arguments = parser.parse_args()
    report = Report(arguments.json)
    run_benchmark(run(QUICK_SIZES if arguments.quick else SIZES, report))
    report.finish()


if __name__ == "__main__":
    main()
