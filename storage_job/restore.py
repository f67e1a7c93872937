"""Restore a home: stream the archive into staging, verify it, and only then touch the volume's content."""

import contextlib
import hashlib
import os
from pathlib import Path

from storage_job.children import Child, Pipeline, write_all
from storage_job.concurrency import settled, together
from storage_job.download import Download, StoredArchive
from storage_job.errors import CorruptedArchive, Reason, failed
from storage_job.meta import ArchiveMeta, parse_meta
from storage_job.progress import Outcome, Progress
from storage_job.pump import copy_scanned
from storage_job.request import JobRequest
from storage_job.scanner import Limits, TarScanner
from storage_job.swap import WorkDirectory, swap
from storage_job.writeback import Writeback

_EXTRACT = (
    "tar",
    "--extract",
    "--file=-",
    "--numeric-owner",
    "--preserve-permissions",
    "--acls",
    "--xattrs",
    "--xattrs-include=*",
    "--delay-directory-restore",
    # How much tar reads and writes at a time. With 10 KiB, its default, it is a fifth slower.
    "--record-size=1M",
    "--warning=no-timestamp",
)
_DECOMPRESS = {".tar.zst": ("zstd", "--decompress", "--quiet", "--stdout"), ".tar.gz": ("gzip", "-dc")}


async def restore(request: JobRequest, progress: Progress) -> Outcome:
    archive = StoredArchive(request)
    meta = parse_meta(await archive.read_meta())
    _check_recorded_digest(request, meta)
    work = WorkDirectory(request.data_dir)
    progress.counters.append(lambda: work.removed)
    try:
        await settled(work.create)
        scanner = TarScanner(_limits(request, meta))
        progress.counters.append(lambda: scanner.bytes)
        download = await archive.download()
        check_size(download, meta, request)
        progress.total = download.size
        async with Writeback(request.data_dir):
            sha256 = await _extract(download, *_start_children(request, work.staging), scanner, progress)
        if sha256 != meta.sha256:
            raise CorruptedArchive("its content does not match the sha256 in its .meta")
        progress.phase = "swap"
        await settled(lambda: swap(work, scanner.members.has_root))
    except OSError as error:
        raise failed(f"The volume cannot be changed ({error}); check it, then try again.") from error
    finally:
        # What led here matters more; the next run begins with this.
        with contextlib.suppress(OSError):
            await settled(work.remove)
    return Outcome(progress.bytes, meta.sha256, scanner.entries, scanner.bytes)


def _limits(request: JobRequest, meta: ArchiveMeta) -> Limits:
    """How much may be unpacked; fail now if that much does not fit beside the old content."""
    space = os.statvfs(request.data_dir)
    free = space.f_bavail * space.f_frsize
    if meta.uncompressed is not None and meta.uncompressed > free:
        raise failed(
            f"The home needs {meta.uncompressed} bytes and the volume has {free} free; nothing was changed. "
            "Give it more space, then try again."
        )
    allowed = min((each for each in (request.max_bytes, meta.uncompressed) if each is not None), default=None)
    # Nobody knows how large an older archive is, and others may need the same disk while we find out.
    room = free - free // 20 if meta.uncompressed is None else None
    return Limits(allowed, room)


def _check_recorded_digest(request: JobRequest, meta: ArchiveMeta) -> None:
    """The content is compared with the meta; an archive that was exchanged brings a meta of its own."""
    if request.expected_sha256 not in (None, meta.sha256):
        raise CorruptedArchive("its sha256 is not the one that was recorded when it was made")


def check_size(download: Download, meta: ArchiveMeta, request: JobRequest) -> None:
    if meta.size not in (None, download.size):
        raise CorruptedArchive(f"it has {download.size} bytes and not {meta.size}")
    if request.expected_size not in (None, download.size):
        detail = f"it has {download.size} bytes and not the {request.expected_size} that were recorded"
        raise CorruptedArchive(f"{detail} when it was made")


def _start_children(request: JobRequest, staging: Path) -> tuple[Child, Child]:
    advice = "the home was not restored; see to that file, then try again"
    return start_decompressor(request), Child((*_EXTRACT, f"--directory={staging}"), advice)


def start_decompressor(request: JobRequest) -> Child:
    command = next(command for suffix, command in _DECOMPRESS.items() if request.key.endswith(suffix))
    return Child(command, "the archive is damaged; restore an older one", Reason.ARCHIVE_CORRUPTED)


async def _extract(
    download: Download, decompressor: Child, tar: Child, scanner: TarScanner, progress: Progress
) -> str:
    """Run the whole stream through the children and return its sha256."""
    with Pipeline(decompressor, tar) as pipeline:
        copying = pipeline.in_thread(copy_scanned, decompressor, tar, scanner)
        _, sha256 = await together(copying, feed(download, decompressor, pipeline, progress))
        await pipeline.in_thread(tar.check)
    return sha256


async def feed(download: Download, decompressor: Child, pipeline: Pipeline, progress: Progress) -> str:
    digest = hashlib.sha256()

    def pass_on(chunk: memoryview) -> None:
        digest.update(chunk)
        write_all(decompressor.stdin, chunk)

    chunk = await anext(download.chunks, None)
    while chunk is not None:
        view = memoryview(chunk)
        try:
            # The next one comes while this one goes.
            _, chunk = await together(pipeline.in_thread(pass_on, view), anext(download.chunks, None))
        except BrokenPipeError:
            # Its status says why it stopped reading; the broken pipe is only the consequence.
            await pipeline.in_thread(decompressor.check)
            raise
        progress.bytes += len(view)
    decompressor.stdin.close()
    return digest.hexdigest()
