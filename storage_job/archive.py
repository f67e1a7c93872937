"""Archive a home: upload it as one object, then commit that object with its meta."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_job.errors import JobError, action_failed
from storage_job.home_stream import HomeStream
from storage_job.meta import ArchiveMeta, parse_meta
from storage_job.progress import Outcome, Progress
from storage_job.request import JobRequest, Operation
from storage_job.unreadable import Modes, made_readable

if TYPE_CHECKING:
    from storage_job.upload import ArchiveObject


async def archive(request: JobRequest, progress: Progress) -> Outcome:
    if request.operation is Operation.CREATE_EMPTY:
        return await _archive(request, progress, {})
    async with made_readable(request.data_dir) as modes:
        return await _archive(request, progress, modes)


async def _archive(request: JobRequest, progress: Progress, modes: Modes) -> Outcome:
    with HomeStream(request, modes) as stream:
        progress.counters.append(lambda: stream.scanner.bytes)
        # Importing the S3 client takes half a second; the first part is compressed meanwhile.
        open_archive = await asyncio.to_thread(_import_client)
        async with open_archive(request) as stored:
            return await _commit(stored, stream, request, progress)


def _import_client() -> "Callable[[JobRequest], AbstractAsyncContextManager[ArchiveObject]]":
    from storage_job.upload import open_archive  # noqa: PLC0415

    return open_archive


async def _commit(
    stored: "ArchiveObject", stream: HomeStream, request: JobRequest, progress: Progress
) -> Outcome:
    # Check this before any failure of the stream: a home that is already committed may be half deleted.
    if (committed := await _read_committed(stored)) is not None:
        return _outcome(committed, skipped=True)
    # A meta without its archive must not commit the object that is about to be written.
    await stored.remove_meta()
    await stored.abort_unfinished_uploads()
    meta = await _upload(stored, stream, request, progress)
    if (size := await stored.size()) != meta.size:
        raise action_failed(f"The store has {size} bytes of the {meta.size} that were sent. Try again.")
    await stored.write_meta(meta.to_bytes())
    return _outcome(meta, skipped=False)


def _outcome(meta: ArchiveMeta, skipped: bool) -> Outcome:
    return Outcome(meta.size or 0, meta.sha256, meta.entries, meta.uncompressed, skipped)


async def _read_committed(stored: "ArchiveObject") -> ArchiveMeta | None:
    content = await stored.read_meta()
    size = await stored.size()
    if content is None or size is None:
        return None
    try:
        meta = parse_meta(content)
    except JobError:
        return None
    # Both objects exist, so the archive is committed, unless the meta belongs to an object of another size.
    return replace(meta, size=size) if meta.size in (None, size) else None


async def _upload(
    stored: "ArchiveObject", stream: HomeStream, request: JobRequest, progress: Progress
) -> ArchiveMeta:
    def count(size: int) -> None:
        progress.bytes += size

    async with stored.start_upload(request.part_size, request.parts_in_flight) as upload:
        await upload.send(stream.read, count)
        await upload.complete()
    return ArchiveMeta(stream.sha256, progress.bytes, stream.scanner.bytes, stream.scanner.entries)
