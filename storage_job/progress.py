"""Report progress and the outcome as JSON lines on stdout."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

INTERVAL_SECONDS = 0.5


@dataclass
class Progress:
    phase: str
    bytes: int = 0
    total: int | None = None
    # Work that is not shown to people, such as bytes read and files removed.
    counters: list[Callable[[], int]] = field(default_factory=list)

    def work(self) -> int:
        """Return a number that grows while the job makes progress; if it does not grow, the job is stuck."""
        return self.bytes + sum(count() for count in self.counters)


@dataclass(frozen=True)
class Outcome:
    """The archive that a finished job wrote or read."""

    bytes: int
    sha256: str
    entries: int | None
    uncompressed: int | None
    skipped: bool = False
    # Result of a verification; None if archive and home are equal.
    difference: str | None = None


def emit(event: str, **values: object) -> None:
    _print(json.dumps({"event": event, **values}))


def emit_last(result: Path | None, event: str, **values: object) -> None:
    """Emit the result, and write it to the file as well: a reader of a Pod's log can miss its end."""
    line = json.dumps({"event": event, **values})
    if result is not None:
        result.write_text(line)
    _print(line)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextlib.asynccontextmanager
async def reported(progress: Progress) -> AsyncIterator[None]:
    """Print progress while the block runs, also if there is none, to notice a dead parent."""
    job = asyncio.current_task()
    reporter = asyncio.create_task(_report(progress))
    # The reporter ends only when stdout is closed: the parent is dead, so the job must stop.
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
