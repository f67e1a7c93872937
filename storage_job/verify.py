"""Compare a committed archive with a directory: every entry, byte and attribute."""

import contextlib
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import IO

from storage_job.compression import Decompressor
from storage_job.concurrency import Pipeline, run_both
from storage_job.download import Download, StoredArchive
from storage_job.errors import CorruptedArchive, action_failed
from storage_job.meta import parse_meta
from storage_job.progress import Outcome, Progress
from storage_job.request import JobRequest
from storage_job.restore import check_size
from storage_job.tar_process import PIPE_BYTES
from storage_job.volume import WORK_NAME

_XATTR = "SCHILY.xattr."
_MAX_NAMED = 3
_TYPES = {
    tarfile.REGTYPE: stat.S_IFREG,
    tarfile.AREGTYPE: stat.S_IFREG,
    tarfile.LNKTYPE: stat.S_IFREG,
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.FIFOTYPE: stat.S_IFIFO,
}


async def verify(request: JobRequest, progress: Progress) -> Outcome:
    """Download the whole archive, so that the stored copy is compared."""
    archive = StoredArchive(request)
    meta = parse_meta(await archive.read_meta())
    download = await archive.download()
    check_size(download, meta, request)
    progress.total = download.size
    comparison = Comparison(request.data_dir)
    sha256 = await _compare(download, Decompressor(request.suffix), comparison, progress)
    if sha256 != meta.sha256:
        raise CorruptedArchive("its content does not match the sha256 in its .meta")
    return Outcome(
        progress.bytes, sha256, comparison.entries, meta.uncompressed, difference=comparison.summary()
    )


async def _compare(
    download: Download, decompressor: Decompressor, comparison: "Comparison", progress: Progress
) -> str:
    """Decompress in one thread and compare in another; return the sha256 of the download."""
    digest = hashlib.sha256()
    reading, writing = os.pipe()
    with Pipeline() as pipeline, os.fdopen(writing, "wb") as target:

        def compare() -> None:
            with os.fdopen(reading, "rb") as stream:
                comparison.run(stream)

        def feed(chunk: memoryview) -> None:
            digest.update(chunk)
            for piece in decompressor.feed(chunk):
                target.write(piece)

        def finish() -> None:
            decompressor.finish()
            target.close()

        async def feed_all() -> None:
            # A failed comparison closes the pipe. Report its error, not the broken pipe that follows.
            with contextlib.suppress(BrokenPipeError), contextlib.closing(target):
                async for chunk in download.chunks:
                    await pipeline.in_thread(feed, memoryview(chunk))
                    progress.bytes += len(chunk)
                await pipeline.in_thread(finish)

        await run_both(pipeline.in_thread(compare), feed_all())
    return digest.hexdigest()


@dataclass
class Comparison:
    """The differences found so far between an archive and a directory."""

    directory: Path
    entries: int = 0
    differences: list[str] = field(default_factory=list)
    _in_archive: set[bytes] = field(default_factory=set)
    # The first name of each file with several hard links, by device and inode.
    _first_names: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def run(self, stream: IO[bytes]) -> None:
        """Compare all members; read to the very end, or the thread that feeds the stream would block."""
        try:
            with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
                for member in tar:
                    self._compare(tar, member)
                    # Otherwise tarfile would keep every member in memory.
                    tar.members.clear()  # type: ignore[attr-defined]
            while stream.read(PIPE_BYTES):
                pass
            self._compare_names()
        except tarfile.TarError as error:
            raise CorruptedArchive(f"it cannot be read ({error})") from error
        except OSError as error:
            raise action_failed(f"Cannot read the directory ({error}). Fix this, then try again.") from error

    def summary(self) -> str | None:
        more = len(self.differences) - _MAX_NAMED
        named = self.differences[:_MAX_NAMED] + ([f"{more} more"] if more > 0 else [])
        return "; ".join(named) or None

    def _compare(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = os.path.normpath(_raw(member.name))
        self.entries += 1
        self._in_archive.add(name)
        try:
            status = os.lstat(self._path(name))
        except FileNotFoundError:
            return  # `_compare_names` reports it.
        for what in self._differences_of(tar, member, name, status):
            self._note(name, f"differs in its {what}")
            return

    def _differences_of(
        self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: bytes, status: os.stat_result
    ) -> Iterator[str]:
        """Yield what differs in an entry; lazily, because the first difference is enough."""
        yield from _status_differences(member, status)
        if not self._same_links(member, name, status):
            yield "hard links"
        if member.issym() and _raw(member.linkname) != os.readlink(self._path(name)):  # noqa: PTH115 (bytes)
            yield "target"
        if member.isreg() and not self._same_content(tar, member, name, status):
            yield "content"
        # The entry of a hard link does not repeat the attributes.
        if not member.islnk() and _archived_attributes(member) != _present_attributes(self._path(name)):
            yield "extended attributes"

    def _same_links(self, member: tarfile.TarInfo, name: bytes, status: os.stat_result) -> bool:
        if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1:
            return not member.islnk()
        identity = status.st_dev, status.st_ino
        first = self._first_names.setdefault(identity, name)
        if not member.islnk():
            return first == name
        return first == os.path.normpath(_raw(member.linkname))

    def _same_content(
        self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: bytes, status: os.stat_result
    ) -> bool:
        if member.size != status.st_size:
            return False
        archived = tar.extractfile(member)
        if archived is None:
            return False
        with archived, open(self._path(name), "rb") as present:  # noqa: PTH123 (bytes)
            while chunk := archived.read(PIPE_BYTES):
                if chunk != present.read(len(chunk)):
                    return False
            return not present.read(1)

    def _compare_names(self) -> None:
        present = set(_names(self.directory))
        for name in sorted(present - self._in_archive):
            self._note(name, "is not in the archive")
        for name in sorted(self._in_archive - present):
            self._note(name, "is missing from the directory")

    def _note(self, name: bytes, what: str) -> None:
        self.differences.append(f"{name.decode(errors='backslashreplace')!r} {what}")

    def _path(self, name: bytes) -> bytes:
        return os.path.join(os.fsencode(self.directory), name)  # noqa: PTH118 (bytes)


def _status_differences(member: tarfile.TarInfo, status: os.stat_result) -> Iterator[str]:
    if _TYPES.get(member.type) != stat.S_IFMT(status.st_mode):
        yield "type"
    if member.mode != stat.S_IMODE(status.st_mode):
        yield "mode"
    if (member.uid, member.gid) != (status.st_uid, status.st_gid):
        yield "owner"
    if _mtime_ns(member) != status.st_mtime_ns:
        yield "modification time"


def _names(directory: Path) -> Iterator[bytes]:
    """Yield the names that an archive of the directory contains: not sockets or the job's own directory."""
    root = os.fsencode(directory)
    yield b"."
    for parent, directories, files in os.walk(root, onerror=_raise):
        if parent == root and WORK_NAME.encode() in directories:
            directories.remove(WORK_NAME.encode())
        for name in directories + files:
            path = os.path.join(parent, name)  # noqa: PTH118 (bytes)
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                yield os.path.relpath(path, root)


def _raise(error: OSError) -> None:
    raise error


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _mtime_ns(member: tarfile.TarInfo) -> int:
    # A float would lose the last digits.
    return int(Decimal(member.pax_headers.get("mtime", int(member.mtime))).scaleb(9))


def _archived_attributes(member: tarfile.TarInfo) -> dict[bytes, bytes]:
    return {
        _raw(name.removeprefix(_XATTR).replace("%3D", "=").replace("%25", "%")): _raw(value)
        for name, value in member.pax_headers.items()
        if name.startswith(_XATTR)
    }


def _present_attributes(path: bytes) -> dict[bytes, bytes]:
    return {
        os.fsencode(name): os.getxattr(path, name, follow_symlinks=False)
        for name in os.listxattr(path, follow_symlinks=False)
    }
