"""JSON lines on stdout: how far the job is, and how it ended."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

INTERVAL_SECONDS = 0.5


@dataclass
class Progress:
    phase: str
    bytes: int = 0
    total: int | None = None
    # Counters of what people are not shown, such as files that are read or removed.
    counters: list[Callable[[], int]] = field(default_factory=list)

    def work(self) -> int:
        """Grows while the job does anything; a job for which it does not is stuck."""
        return self.bytes + sum(count() for count in self.counters)


@dataclass(frozen=True)
class Outcome:
    """What a finished job has to say about the archive it wrote or read."""

    bytes: int
    sha256: str
    entries: int | None
    uncompressed: int | None
    skipped: bool = False
    # What was compared and differs.
    difference: str | None = None


def emit(event: str, **values: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


@contextlib.asynccontextmanager
async def reported(progress: Progress) -> AsyncIterator[None]:
    """Print the progress while the block runs, even without progress, to notice a dead parent."""
    job = asyncio.current_task()
    reporter = asyncio.create_task(_report(progress))
    # It ends by itself only when nobody reads any more: the parent is dead, so the job must not run on.
    reporter.add_done_callback(lambda _: job.cancel() if job and not reporter.cancelled() else None)
    try:
        yield
    finally:
        reporter.cancel()


async def _report(progress: Progress) -> None:
    with contextlib.suppress(OSError):
        while True:
            figures = {"bytes": progress.bytes, "total": progress.total, "work": progress.work()}
            emit("progress", phase=progress.phase, **figures)
            await asyncio.sleep(INTERVAL_SECONDS)
