"""One job from start to end: hold the volume, run the operation, report meanwhile."""

from contextlib import nullcontext

from storage_job.archive import archive
from storage_job.progress import Outcome, Progress, reported
from storage_job.request import JobRequest, Operation
from storage_job.restore import restore
from storage_job.volume import locked


async def perform(request: JobRequest) -> Outcome:
    restoring = request.operation is Operation.RESTORE
    operation = restore if restoring else archive
    progress = Progress("download" if restoring else "upload")
    # An empty archive comes out of nothing, so that job has no volume.
    volume = nullcontext() if request.operation is Operation.CREATE_EMPTY else locked(request.data_dir)
    with volume:
        async with reported(progress):
            return await operation(request, progress)
