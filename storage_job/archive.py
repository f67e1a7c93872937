"""Archive a home: tar | zstd, hashed and uploaded as it flows, committed by the meta at the very end."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from storage_job.children import PIPE_BYTES, Child, Pipeline
from storage_job.concurrency import together
from storage_job.errors import CorruptedArchive, JobError, failed
from storage_job.meta import ArchiveMeta, parse_meta
from storage_job.progress import Outcome, Progress
from storage_job.pump import copy_scanned
from storage_job.request import JobRequest, Operation
from storage_job.s3 import ArchiveObject
from storage_job.scanner import TarScanner
from storage_job.upload import MultipartUpload
from storage_job.volume import WORK_NAME

_CREATE = (
    "tar",
    "--create",
    "--file=-",
    "--format=posix",
    # Reading a home changes its access times. Without them a second run writes the very same archive, so that
    # even a run thought dead that comes back cannot leave a tar and a meta that do not fit together.
    "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
    "--numeric-owner",
    "--acls",
    "--xattrs",
    "--xattrs-include=*",
    "--sparse",
    "--warning=no-file-ignored",
)


async def archive(archive_object: ArchiveObject, request: JobRequest, progress: Progress) -> Outcome:
    if (committed := await _committed(archive_object)) is not None:
        return _outcome(committed, skipped=True)
    # A meta left without its archive must not seem to commit the one that is about to be written.
    await archive_object.remove_meta()
    await archive_object.abort_leftovers()
    meta = await _upload(archive_object, request, progress)
    if (stored := await archive_object.size()) != meta.size:
        raise failed(f"The store holds {stored} bytes of the {meta.size} that were sent; try again.")
    await archive_object.write_meta(meta.to_bytes())
    return _outcome(meta, skipped=False)


def _outcome(meta: ArchiveMeta, skipped: bool) -> Outcome:
    return Outcome(meta.size or 0, meta.sha256, meta.entries, meta.uncompressed, skipped)


async def _committed(archive_object: ArchiveObject) -> ArchiveMeta | None:
    content = await archive_object.read_meta()
    size = await archive_object.size()
    if content is None or size is None:
        return None
    try:
        meta = parse_meta(content)
    except JobError:
        return None
    # Both objects are there: that is the commit rule. A size that contradicts it means that it never held.
    return replace(meta, size=size) if meta.size in (None, size) else None


async def _upload(archive_object: ArchiveObject, request: JobRequest, progress: Progress) -> ArchiveMeta:
    # A file that changes while it is read makes tar end with 1. The instance is stopped, so somebody writes
    # where nobody may. The home is deleted once archived, so a torn archive is none: 1 fails like the rest.
    tar = Child(_tar_command(request), "the home was not archived; see to that file, then try again")
    zstd = Child(_zstd_command(request), "the home was not archived; try again")
    scanner, digest = TarScanner(), hashlib.sha256()

    def read(size: int) -> bytes:
        part = _read_full(zstd, size)
        digest.update(part)
        return part

    def count(size: int) -> None:
        progress.bytes += size

    with Pipeline(tar, zstd) as pipeline:
        async with MultipartUpload(archive_object, request.part_size, request.parts_in_flight) as upload:
            # The scanner watches here too: what a restore would refuse must not count as archived.
            copying = pipeline.in_thread(_copy, tar, zstd, scanner)
            await together(copying, upload.send(lambda size: pipeline.in_thread(read, size), count))
            await pipeline.in_thread(zstd.check)
            await upload.complete()
    return ArchiveMeta(digest.hexdigest(), progress.bytes, scanner.bytes, scanner.entries)


def _copy(tar: Child, zstd: Child, scanner: TarScanner) -> None:
    try:
        copy_scanned(tar, zstd, scanner)
    except CorruptedArchive as error:
        # Nothing is lost: it is the home that is unusual, and it is still there.
        raise failed(f"The home cannot be archived: {error.detail}; see to it, then try again.") from error


def _tar_command(request: JobRequest) -> Sequence[str]:
    if request.operation is Operation.CREATE_EMPTY:
        # No member at all, not even the root: the restored home keeps the owner and mode of its volume.
        return (*_CREATE, "--files-from=/dev/null")
    own_files = ("--anchored", "--no-wildcards", f"--exclude=./{WORK_NAME}")
    return (*_CREATE, f"--directory={request.data_dir}", *own_files, ".")


def _zstd_command(request: JobRequest) -> Sequence[str]:
    return ("zstd", f"-{request.compression_level}", "-T0", "--quiet", "--stdout")


def _read_full(child: Child, size: int) -> bytes:
    """Read until `size` bytes are there or the stream ends: S3 takes no small parts but the last."""
    chunks, missing = [], size
    while missing and (chunk := child.read(min(missing, PIPE_BYTES))):
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)
