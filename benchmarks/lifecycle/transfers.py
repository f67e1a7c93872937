"""Archive and restore a large home with the storage job, alternating with a plain pipe; peak memory."""

import asyncio
import os
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from benchmarks.lifecycle.plain_pipe import PlainPipe
from benchmarks.report import MEGABYTE, Cell, Report, Section, verdict
from benchmarks.resource_usage import peak_memory
from benchmarks.sample_home import make_home
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.adapters.local.volumes import LocalVolumes
from codehub.bootstrap import archive_store_of
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import archive_key
from codehub.formatting import format_size
from codehub.ports import UNRECORDED
from testkit.deployment import Deployment
from testkit.rows import new_workspace_id

GOAL_RATIO = 0.9
SMALLER = 4
SYNCED = "restore, pipe + sync"


@dataclass(frozen=True)
class HomeSize:
    files: int
    total_bytes: int


@dataclass
class TransferBenchmark:
    """Homes in a root of their own, which is removed with the deployment's directory."""

    root: LocalRoot
    jobs: LocalStorageJobs
    pipe: PlainPipe
    times: defaultdict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: defaultdict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    async def make(self, size: HomeSize) -> tuple[WorkspaceId, int]:
        workspace_id = new_workspace_id()
        await LocalVolumes(self.root.path).provision(workspace_id)
        home = self.root.volume(workspace_id)
        return workspace_id, await asyncio.to_thread(make_home, home, size.files, size.total_bytes)

    async def run_job(self, source: WorkspaceId, measure: "Measure") -> None:
        key = archive_key(source, str(uuid4()))
        await measure("archive", self.jobs.archive(source, key, lambda _: None))
        # Restore into a new volume: creating files after a mass delete is very slow.
        await measure("restore", self.jobs.restore(new_workspace_id(), key, lambda _: None, UNRECORDED))

    async def run_pipe(self, source: WorkspaceId, measure: "Measure") -> None:
        key, target = f"plain/{uuid4()}", self.root.path / "plain" / str(uuid4())
        target.mkdir(parents=True)
        await measure("archive", asyncio.to_thread(self.pipe.archive, self.root.volume(source), key))
        await measure("restore", asyncio.to_thread(self.pipe.restore, target, key))

    def measure(self, how: str) -> "Measure":
        async def timed(what: str, work: Awaitable[object]) -> None:
            # Do not measure writes that were pending before.
            await asyncio.to_thread(os.sync)
            began, spent = time.perf_counter(), _cpu_of_children()
            await work
            self.times[how, what].append(time.perf_counter() - began)
            self.cpu[how, what].append(_cpu_of_children() - spent)
            if (how, what) == ("pipe", "restore"):
                # When the job ends its files are on disk; those of the pipe may be only in the page cache.
                await asyncio.to_thread(os.sync)
                self.times["pipe", SYNCED].append(time.perf_counter() - began)

        return timed


def _cpu_of_children() -> float:
    """Return the CPU time of all ended children: the job or the pipe, but no server."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


Measure = Callable[[str, Awaitable[object]], Awaitable[None]]


async def measure_transfers(deployment: Deployment, size: HomeSize, rounds: int, report: Report) -> None:
    report.log(f"home of {size.files} files, {format_size(size.total_bytes)}")
    root = LocalRoot.at(Path(deployment.environment["CODEHUB_DATA_DIR"]) / "transfers")
    root.prepare()
    store = archive_store_of(deployment.settings)
    benchmark = TransferBenchmark(root, LocalStorageJobs(root.path, store), PlainPipe(store))
    source, content = await benchmark.make(size)
    for number in range(rounds):
        report.log(f"round {number + 1} of {rounds}")
        runs = [(benchmark.run_job, "job"), (benchmark.run_pipe, "pipe")]
        # The second of a round finds a busier disk, so alternate.
        for run, how in runs if number % 2 == 0 else reversed(runs):
            await run(source, benchmark.measure(how))
    report.add(_speed(benchmark, content, rounds))
    smaller, less = await benchmark.make(HomeSize(size.files // SMALLER, size.total_bytes // SMALLER))
    rows = [await _peaks(benchmark, smaller, less), await _peaks(benchmark, source, content)]
    report.add(Section("Peak memory of the job's processes together", ("MB", "archive", "restore"), rows))


def _speed(benchmark: TransferBenchmark, content: int, rounds: int) -> Section:
    rows: list[Sequence[Cell]] = []
    remarks = []
    for what in ("archive", "restore", SYNCED):
        done = "archive" if what == "archive" else "restore"
        job, pipe = (
            statistics.median(each) for each in (benchmark.times["job", done], benchmark.times["pipe", what])
        )
        ratio = pipe / job
        speeds = (round(content / MEGABYTE / seconds, 1) for seconds in (job, pipe))
        costs = (round(statistics.median(benchmark.cpu[how, done]), 2) for how in ("job", "pipe"))
        rows.append((what, round(job, 2), round(pipe, 2), *speeds, f"{ratio:.2f}x", *costs))
        met = verdict(ratio >= GOAL_RATIO)
        remarks.append(f"{what}: {ratio:.2f}x of the plain pipe (goal: {GOAL_RATIO}x): {met}")
    columns = ("", "job s", "pipe s", "job MB/s", "pipe MB/s", "ratio", "job CPU s", "pipe CPU s")
    title = f"Storage job compared with the plain pipe, {format_size(content)}, medians of {rounds} rounds"
    return Section(title, columns, rows, remarks)


async def _peaks(benchmark: TransferBenchmark, source: WorkspaceId, content: int) -> tuple[str, float, float]:
    peaks = []

    async def watched(_what: str, work: Awaitable[object]) -> None:
        with peak_memory() as peak:
            await work
        peaks.append(round(peak.megabytes))

    await benchmark.run_job(source, watched)
    return f"home of {format_size(content)}", peaks[0], peaks[1]
