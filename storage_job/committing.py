"""Upload a stream as an archive, committed by the meta at the very end."""

from dataclasses import replace

from storage_job.errors import JobError, failed
from storage_job.home_stream import HomeStream
from storage_job.meta import ArchiveMeta, parse_meta
from storage_job.progress import Outcome, Progress
from storage_job.request import JobRequest
from storage_job.s3 import ArchiveObject, open_archive
from storage_job.upload import MultipartUpload


async def commit(stream: HomeStream, request: JobRequest, progress: Progress) -> Outcome:
    async with open_archive(request) as archive:
        # Before anything that befalls the stream: a home that is committed may be half deleted by now.
        if (committed := await _committed(archive)) is not None:
            return _outcome(committed, skipped=True)
        # A meta left without its archive must not seem to commit the one that is about to be written.
        await archive.remove_meta()
        await archive.abort_leftovers()
        meta = await _upload(archive, stream, request, progress)
        if (stored := await archive.size()) != meta.size:
            raise failed(f"The store holds {stored} bytes of the {meta.size} that were sent; try again.")
        await archive.write_meta(meta.to_bytes())
        return _outcome(meta, skipped=False)


def _outcome(meta: ArchiveMeta, skipped: bool) -> Outcome:
    return Outcome(meta.size or 0, meta.sha256, meta.entries, meta.uncompressed, skipped)


async def _committed(archive: ArchiveObject) -> ArchiveMeta | None:
    content = await archive.read_meta()
    size = await archive.size()
    if content is None or size is None:
        return None
    try:
        meta = parse_meta(content)
    except JobError:
        return None
    # Both objects are there: that is the commit rule. A size that contradicts it means that it never held.
    return replace(meta, size=size) if meta.size in (None, size) else None


async def _upload(
    archive: ArchiveObject, stream: HomeStream, request: JobRequest, progress: Progress
) -> ArchiveMeta:
    def count(size: int) -> None:
        progress.bytes += size

    async with MultipartUpload(archive, request.part_size, request.parts_in_flight) as upload:
        await upload.send(stream.read, count)
        await upload.complete()
    return ArchiveMeta(stream.sha256, progress.bytes, stream.scanner.bytes, stream.scanner.entries)
