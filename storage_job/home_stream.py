"""Read a home as a compressed tar stream, checked by the scanner and hashed on the way."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Self

from storage_job.compression import new_compressor
from storage_job.concurrency import Pipeline
from storage_job.errors import CorruptedArchive, action_failed
from storage_job.request import JobRequest, Operation
from storage_job.tar.headers import BLOCK
from storage_job.tar.scanner import TarScanner
from storage_job.tar_process import PIPE_BYTES, TarProcess
from storage_job.unreadable import Modes
from storage_job.volume import WORK_NAME, foreign_names

_CREATE = (
    "tar",
    "--create",
    "--file=-",
    "--format=posix",
    # Reading a home changes its access times. Without them a second run writes an identical archive, so even
    # a run that was presumed dead and comes back cannot leave an archive that does not match its meta.
    "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
    "--numeric-owner",
    "--acls",
    "--xattrs",
    "--xattrs-include=*",
    "--sparse",
    # How much tar reads and writes at a time; the default of 10 KiB costs half as much CPU again. More would
    # waste space, because tar pads the last record with zeros.
    "--record-size=128K",
    "--warning=no-file-ignored",
)


class HomeStream:
    """A stream that starts at once; use as `with`, and none of its processes outlives the block."""

    def __init__(self, request: JobRequest, modes: Modes) -> None:
        # tar exits with 1 if a file changes while it is read. The instance is stopped, so nothing should be
        # writing. The home is deleted after archiving, so an inconsistent archive counts as a failure.
        advice = "The home was not archived. Check that file, then try again."
        self._tar = TarProcess(_tar_command(request), advice)
        self._pipeline = Pipeline(self._tar)
        # Scan here too: an archive that a restore would refuse must not be committed.
        self.scanner = TarScanner(modes=modes)
        self._compressor = new_compressor(request.compression_level)
        self._buffer = memoryview(bytearray(PIPE_BYTES))
        self._compressed = bytearray()
        self._complete = False
        self._digest = hashlib.sha256()
        self._first_part_bytes = request.part_size

    def __enter__(self) -> Self:
        self._pipeline.__enter__()
        self._first_part = self._pipeline.in_thread(self._compress, self._first_part_bytes)
        return self

    def __exit__(self, *_: object) -> None:
        # Without this, a failure that was never awaited would be logged.
        self._first_part.cancel()
        self._pipeline.__exit__()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    async def read(self, size: int) -> bytes:
        """Return the next bytes, fewer than requested only at the end; raise JobError if tar failed."""
        await self._first_part
        return await self._pipeline.in_thread(self._read, size)

    def _read(self, size: int) -> bytes:
        self._compress(size)
        with memoryview(self._compressed) as compressed:
            part = bytes(compressed[:size])
        del self._compressed[:size]
        self._digest.update(part)
        return part

    def _compress(self, size: int) -> None:
        """Compress until `size` bytes are ready or the home ends: only the last part may be small."""
        while len(self._compressed) < size and not self._complete:
            if count := self._read_blocks():
                self._scan(self._buffer[:count])
                self._compressed += self._compressor.compress(self._buffer[:count])
            else:
                self._finish()

    def _read_blocks(self) -> int:
        """Read whole blocks, because the scanner edits headers in the buffer; return 0 at the end."""
        count = self._tar.read_into(self._buffer)
        while count % BLOCK and (more := self._tar.read_into(self._buffer[count:])):
            count += more
        return count

    def _scan(self, chunk: memoryview) -> None:
        with _blaming_the_home():
            self.scanner.feed(chunk)

    def _finish(self) -> None:
        # A tar that died leaves a truncated stream, so check its status before checking the stream.
        self._tar.check()
        with _blaming_the_home():
            self.scanner.finish()
        self._compressed += self._compressor.flush()
        self._complete = True


@contextlib.contextmanager
def _blaming_the_home() -> Iterator[None]:
    try:
        yield
    except CorruptedArchive as error:
        # No archive is damaged: the home contains something that cannot be archived, and it still exists.
        raise action_failed(
            f"The home cannot be archived: {error.detail}. Fix it, then try again."
        ) from error


def _tar_command(request: JobRequest) -> Sequence[str]:
    if request.operation is Operation.CREATE_EMPTY:
        # Without any member, not even the root, a restored home keeps the owner and mode of its volume.
        return (*_CREATE, "--files-from=/dev/null")
    uid = request.archived_owner
    owner = () if uid is None else (f"--owner=:{uid}", f"--group=:{uid}")
    left_out = (f"--exclude=./{name}" for name in (WORK_NAME, *foreign_names(request.data_dir)))
    names = ("--anchored", "--no-wildcards", *left_out)
    return (*_CREATE, *owner, f"--directory={request.data_dir}", *names, ".")
