"""Measure sweeps: wall and CPU time, memory, and the rows that they read."""

import asyncio
import statistics
import time
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import text

from benchmarks.resource_usage import Usage, cpu_seconds, memory_megabytes
from testkit.deployment import Deployment

# An idle PostgreSQL backend publishes its counters after at most ten seconds.
COUNTERS_SECONDS = 11
ROWS_READ = text(
    "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables "
    "WHERE relname = 'workspaces'"
)
OPEN = "ExecutionStatus = 'Running'"
OBSERVE = "ObserveWorkflow"


@dataclass(frozen=True)
class Cost:
    """The median cost of one sweep; `cpu` is in seconds by part."""

    wall_seconds: float
    cpu: Usage
    rows_read: float


@dataclass
class Sweeper:
    """Runs sweeps on an otherwise idle worker."""

    deployment: Deployment
    worker: int
    _rows: int = 0

    async def begin(self) -> None:
        """Read the counters before the first sweep."""
        self._rows = await self._rows_read()

    async def sweep(self) -> float:
        """Run the scheduled workflow once; return the seconds."""
        began = time.perf_counter()
        task_queue = self.deployment.settings.temporal.task_queue
        await self.deployment.client.execute_workflow(
            OBSERVE, id=f"{OBSERVE}-{uuid4()}", task_queue=task_queue
        )
        return time.perf_counter() - began

    async def cost_of(self, sweeps: int) -> Cost:
        cpu = cpu_seconds(self.worker)
        walls = [await self.sweep() for _ in range(sweeps)]
        spent = cpu_seconds(self.worker)
        for part in spent:
            spent[part] = (spent[part] - cpu[part]) / sweeps
        before, self._rows = self._rows, await self._rows_read()
        return Cost(statistics.median(walls), spent, (self._rows - before) / sweeps)

    async def open_workflows(self) -> int:
        return (await self.deployment.client.count_workflows(OPEN)).count

    def memory(self) -> Usage:
        return memory_megabytes(self.worker)

    async def _rows_read(self) -> int:
        await asyncio.sleep(COUNTERS_SECONDS)
        async with self.deployment.database.transaction() as session:
            return await session.scalar(ROWS_READ) or 0
