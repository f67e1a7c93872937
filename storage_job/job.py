"""Run one job: lock the volume, perform the operation, report progress."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from storage_job.archive import archive
from storage_job.progress import Outcome, Progress, reported
from storage_job.request import JobRequest, Operation
from storage_job.restore import restore
from storage_job.volume import locked

PHASES = {Operation.RESTORE: "download", Operation.VERIFY: "verify"}


async def perform(request: JobRequest) -> Outcome:
    progress = Progress(PHASES.get(request.operation, "upload"))
    # An empty archive is made without a volume.
    volume = nullcontext() if request.operation is Operation.CREATE_EMPTY else locked(request.data_dir)
    with volume:
        async with reported(progress):
            return await _function_for(request.operation)(request, progress)


def _function_for(operation: Operation) -> Callable[[JobRequest, Progress], Awaitable[Outcome]]:
    if operation is Operation.VERIFY:
        # It is rarely used, and its imports would delay every restore.
        from storage_job.verify import verify  # noqa: PLC0415

        return verify
    return restore if operation is Operation.RESTORE else archive
