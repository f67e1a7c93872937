"""Restore a home: stream the archive into staging, verify it, and only then touch the volume's content."""

import contextlib
import hashlib
import os
from pathlib import Path

from storage_job.tar_process import Child, Pipeline
from storage_job.compression import Decompressor
from storage_job.concurrency import settled, together
from storage_job.download import Download, StoredArchive
from storage_job.errors import CorruptedArchive, failed
from storage_job.meta import ArchiveMeta, parse_meta
from storage_job.progress import Outcome, Progress
from storage_job.request import JobRequest
from storage_job.tar.scanner import Limits, TarScanner
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
            sha256 = await _extract(download, Unpacking(request, work.staging, scanner), progress)
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


class Unpacking:
    """An archive on its way through decompressor and scanner into tar; hashed as it comes in."""

    def __init__(self, request: JobRequest, staging: Path, scanner: TarScanner) -> None:
        self._decompressor = Decompressor(request.suffix)
        self._scanner = scanner
        self._digest = hashlib.sha256()
        advice = "the home was not restored; see to that file, then try again"
        self.tar = Child((*_EXTRACT, f"--directory={staging}"), advice)

    def feed(self, chunk: memoryview) -> None:
        self._digest.update(chunk)
        for piece in self._decompressor.feed(chunk):
            view = memoryview(piece)
            self._scanner.feed(view)
            self.tar.write(view)

    def finish(self) -> str:
        """Return the sha256 of a stream that has ended well."""
        self._decompressor.finish()
        self._scanner.finish()
        self.tar.stdin.close()
        self.tar.check()
        return self._digest.hexdigest()


async def _extract(download: Download, unpacking: Unpacking, progress: Progress) -> str:
    with Pipeline(unpacking.tar) as pipeline:
        chunk = await anext(download.chunks, None)
        while chunk is not None:
            view = memoryview(chunk)
            # The next one comes while this one goes.
            _, chunk = await together(pipeline.in_thread(unpacking.feed, view), anext(download.chunks, None))
            progress.bytes += len(view)
        return await pipeline.in_thread(unpacking.finish)
