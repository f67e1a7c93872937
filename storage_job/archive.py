"""Archive a home: let it flow, and commit what has flowed."""

import asyncio
from collections.abc import Awaitable, Callable

from storage_job.home_stream import HomeStream
from storage_job.progress import Outcome, Progress
from storage_job.request import JobRequest

Commit = Callable[[HomeStream, JobRequest, Progress], Awaitable[Outcome]]


async def archive(request: JobRequest, progress: Progress) -> Outcome:
    # The first part is compressed while the client is imported, which takes half a second.
    with HomeStream(request) as stream:
        progress.counters.append(lambda: stream.scanner.bytes)
        commit = await asyncio.to_thread(_load)
        return await commit(stream, request, progress)


def _load() -> Commit:
    from storage_job.committing import commit  # noqa: PLC0415

    return commit
