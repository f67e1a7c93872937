"""Restore a home: extract the archive into staging, verify it, and only then replace the old content."""

import contextlib
import hashlib
import os
from pathlib import Path

from storage_job.compression import Decompressor
from storage_job.concurrency import Pipeline, run_both, run_to_completion
from storage_job.download import Download, StoredArchive
from storage_job.errors import CorruptedArchive, action_failed
from storage_job.meta import ArchiveMeta, parse_meta
from storage_job.progress import Outcome, Progress
from storage_job.request import JobRequest
from storage_job.swap import WorkDirectory, swap
from storage_job.tar.scanner import Limits, TarScanner
from storage_job.tar_process import TarProcess
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
    # How much tar reads and writes at a time; with the default of 10 KiB it is a fifth slower.
    "--record-size=1M",
    "--warning=no-timestamp",
)


async def restore(request: JobRequest, progress: Progress) -> Outcome:
    archive = StoredArchive(request)
    meta = parse_meta(await archive.read_meta())
    _check_recorded_sha256(request, meta)
    work = WorkDirectory(request.data_dir)
    progress.counters.append(lambda: work.removed)
    try:
        await run_to_completion(work.create)
        scanner = TarScanner(_limits(request, meta))
        progress.counters.append(lambda: scanner.bytes)
        download = await archive.download()
        check_size(download, meta, request)
        progress.total = download.size
        async with Writeback(request.data_dir):
            sha256 = await _extract(download, Extraction(request, work.staging, scanner), progress)
        if sha256 != meta.sha256:
            raise CorruptedArchive("its content does not match the sha256 in its .meta")
        progress.phase = "swap"
        await run_to_completion(lambda: swap(work, scanner.members.has_root))
    except OSError as error:
        raise action_failed(f"Cannot change the volume ({error}). Check it, then try again.") from error
    finally:
        # Report the original failure, not this one; the next run starts by removing the directory.
        with contextlib.suppress(OSError):
            await run_to_completion(work.remove)
    return Outcome(progress.bytes, meta.sha256, scanner.entries, scanner.bytes)


def _limits(request: JobRequest, meta: ArchiveMeta) -> Limits:
    """Return how much may be extracted; fail now if it cannot fit next to the old content."""
    space = os.statvfs(request.data_dir)
    free = space.f_bavail * space.f_frsize
    if meta.uncompressed is not None and meta.uncompressed > free:
        raise action_failed(
            f"The home needs {meta.uncompressed} bytes, but the volume has only {free} free. Nothing was "
            "changed. Give it more space, then try again."
        )
    allowed = min((each for each in (request.max_bytes, meta.uncompressed) if each is not None), default=None)
    # The size of an older archive is unknown; leave some space for other users of the disk.
    available = free - free // 20 if meta.uncompressed is None else None
    return Limits(allowed, available)


def _check_recorded_sha256(request: JobRequest, meta: ArchiveMeta) -> None:
    """Compare with the database: an archive that was replaced comes with a matching meta of its own."""
    if request.expected_sha256 not in (None, meta.sha256):
        raise CorruptedArchive("its sha256 differs from the one recorded when it was made")


def check_size(download: Download, meta: ArchiveMeta, request: JobRequest) -> None:
    if meta.size not in (None, download.size):
        raise CorruptedArchive(f"it has {download.size} bytes instead of {meta.size}")
    if request.expected_size not in (None, download.size):
        detail = (
            f"it has {download.size} bytes instead of the {request.expected_size} recorded when it was made"
        )
        raise CorruptedArchive(detail)


class Extraction:
    """Passes an archive through the decompressor and the scanner into tar, and hashes it."""

    def __init__(self, request: JobRequest, staging: Path, scanner: TarScanner) -> None:
        self._decompressor = Decompressor(request.suffix)
        self._scanner = scanner
        self._digest = hashlib.sha256()
        advice = "The home was not restored. Check that file, then try again."
        self.tar = TarProcess((*_EXTRACT, f"--directory={staging}"), advice)

    def feed(self, chunk: memoryview) -> None:
        self._digest.update(chunk)
        for piece in self._decompressor.feed(chunk):
            view = memoryview(piece)
            self._scanner.feed(view)
            self.tar.write(view)

    def finish(self) -> str:
        """Check that everything ended properly; return the sha256 of the archive."""
        self._decompressor.finish()
        self._scanner.finish()
        self.tar.stdin.close()
        self.tar.check()
        return self._digest.hexdigest()


async def _extract(download: Download, extraction: Extraction, progress: Progress) -> str:
    with Pipeline(extraction.tar) as pipeline:
        chunk = await anext(download.chunks, None)
        while chunk is not None:
            view = memoryview(chunk)
            # Download the next chunk while this one is extracted.
            _, chunk = await run_both(pipeline.in_thread(extraction.feed, view), anext(download.chunks, None))
            progress.bytes += len(view)
        return await pipeline.in_thread(extraction.finish)
