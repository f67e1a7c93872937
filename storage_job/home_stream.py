"""A home as a compressed tar stream, watched by the scanner and hashed as it flows."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Self

from storage_job.tar_process import PIPE_BYTES, Child, Pipeline
from storage_job.compression import new_compressor
from storage_job.errors import CorruptedArchive, failed
from storage_job.request import JobRequest, Operation
from storage_job.tar.scanner import TarScanner
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
        self._pipeline = Pipeline(self._tar)
        # The scanner watches here too: what a restore would refuse must not count as archived.
        self.scanner = TarScanner()
        self._compressor = new_compressor(request.compression_level)
        self._buffer = memoryview(bytearray(PIPE_BYTES))
        self._compressed = bytearray()
        self._complete = False
        self._digest = hashlib.sha256()
        self._first_part_bytes = request.part_size

    def __enter__(self) -> Self:
        self._pipeline.__enter__()
        self._beginning = self._pipeline.in_thread(self._compress, self._first_part_bytes)
        return self

    def __exit__(self, *_: object) -> None:
        # Whoever did not wait for it does not want to know how it ended either.
        self._beginning.cancel()
        self._pipeline.__exit__()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    async def read(self, size: int) -> bytes:
        """Return the next bytes, fewer than asked for only at the end; raise unless that is a good end."""
        await self._beginning
        return await self._pipeline.in_thread(self._read, size)

    def _read(self, size: int) -> bytes:
        self._compress(size)
        with memoryview(self._compressed) as compressed:
            part = bytes(compressed[:size])
        del self._compressed[:size]
        self._digest.update(part)
        return part

    def _compress(self, size: int) -> None:
        """Compress until `size` bytes are there or the home ends: S3 takes no small parts but the last."""
        while len(self._compressed) < size and not self._complete:
            if count := self._tar.read_into(self._buffer):
                self._scan(self._buffer[:count])
                self._compressed += self._compressor.compress(self._buffer[:count])
            else:
                self._end()

    def _scan(self, chunk: memoryview) -> None:
        with _about_the_home():
            self.scanner.feed(chunk)

    def _end(self) -> None:
        # A tar that died leaves a short stream, so ask for its status before judging the stream.
        self._tar.check()
        with _about_the_home():
            self.scanner.finish()
        self._compressed += self._compressor.flush()
        self._complete = True


@contextlib.contextmanager
def _about_the_home() -> Iterator[None]:
    try:
        yield
    except CorruptedArchive as error:
        # Nothing is lost: it is the home that is unusual, and it is still there.
        raise failed(f"The home cannot be archived: {error.detail}; see to it, then try again.") from error


def _tar_command(request: JobRequest) -> Sequence[str]:
    if request.operation is Operation.CREATE_EMPTY:
        # No member at all, not even the root: the restored home keeps the owner and mode of its volume.
        return (*_CREATE, "--files-from=/dev/null")
    own_files = ("--anchored", "--no-wildcards", f"--exclude=./{WORK_NAME}")
    return (*_CREATE, f"--directory={request.data_dir}", *own_files, ".")
