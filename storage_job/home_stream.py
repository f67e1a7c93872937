"""A home as a compressed tar stream: tar | zstd, watched by the scanner and hashed as it flows."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Self

from storage_job.children import PIPE_BYTES, Child, Pipeline
from storage_job.errors import CorruptedArchive, failed
from storage_job.pump import copy_scanned
from storage_job.request import JobRequest, Operation
from storage_job.scanner import TarScanner
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
    # How much tar reads and writes at a time; its default, 10 KiB, costs half as much CPU again. No more than
    # that, since the last record is filled up with zeros.
    "--record-size=128K",
    "--warning=no-file-ignored",
)


class HomeStream:
    """Use as `with`: it begins to flow at once, and nothing of it outlives the block."""

    def __init__(self, request: JobRequest) -> None:
        # A file that changes while it is read makes tar end with 1. The instance is stopped, so somebody
        # writes where nobody may. The home is deleted once archived, so a torn archive is none: 1 fails like
        # the rest.
        advice = "the home was not archived; see to that file, then try again"
        self._tar = Child(_tar_command(request), advice)
        self._zstd = Child(_zstd_command(request), "the home was not archived; try again")
        self._pipeline = Pipeline(self._tar, self._zstd)
        self._digest = hashlib.sha256()
        # The scanner watches here too: what a restore would refuse must not count as archived.
        self.scanner = TarScanner()

    def __enter__(self) -> Self:
        self._pipeline.__enter__()
        self.flowing: asyncio.Future[None] = self._pipeline.in_thread(
            _copy, self._tar, self._zstd, self.scanner
        )
        return self

    def __exit__(self, *_: object) -> None:
        # Whoever did not wait for it does not want to know how it ended either.
        self.flowing.cancel()
        self._pipeline.__exit__()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    async def read(self, size: int) -> bytes:
        """The next bytes; fewer than asked for only at the end."""
        return await self._pipeline.in_thread(self._read, size)

    async def check(self) -> None:
        """Raise unless everything that was to flow has done so."""
        await self.flowing
        await self._pipeline.in_thread(self._zstd.check)

    def _read(self, size: int) -> bytes:
        part = _read_full(self._zstd, size)
        self._digest.update(part)
        return part


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
