"""Compress and decompress streams in bounded memory, whatever they contain."""

import os
import sys
import zlib
from collections.abc import Iterator
from typing import Protocol

from storage_job.errors import CorruptedArchive

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# tar keeps no more threads than this busy. Each takes about 17 MB, so memory does not grow with the cores.
MAX_THREADS = 4
PIECE_BYTES = 1024 * 1024
# Data after the end of a frame is copied, so small frames must not each copy a large rest.
_SLICE_BYTES = 64 * 1024
_GZIP_HEADER = 16 + zlib.MAX_WBITS


def new_compressor(level: int) -> zstd.ZstdCompressor:
    """Return a multi-threaded compressor; the number of threads does not change its output."""
    return zstd.ZstdCompressor(
        options={
            zstd.CompressionParameter.compression_level: level,
            zstd.CompressionParameter.checksum_flag: 1,
            zstd.CompressionParameter.nb_workers: min(len(os.sched_getaffinity(0)), MAX_THREADS),
        }
    )


class _Frame(Protocol):
    """One Zstandard frame or gzip member, with the interface of `zstd.ZstdDecompressor`."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes: ...


class Decompressor:
    """Decompresses a stream of frames, holding at most one piece and the window in memory."""

    def __init__(self, suffix: str) -> None:
        # By default the library refuses frames that need a window over 128 MiB.
        self._new_frame: type[_Frame] = {".tar.zst": zstd.ZstdDecompressor, ".tar.gz": _GzipMember}[suffix]
        self._frame = self._new_frame()

    def feed(self, chunk: memoryview) -> Iterator[bytes]:
        """Yield the decompressed data; raise CorruptedArchive if the input is invalid."""
        for start in range(0, len(chunk), _SLICE_BYTES):
            yield from self._feed(chunk[start : start + _SLICE_BYTES])

    def finish(self) -> None:
        if not self._frame.eof:
            raise CorruptedArchive("its compressed data ends too early")

    def _feed(self, data: bytes | memoryview) -> Iterator[bytes]:
        while data:
            if self._frame.eof:
                self._frame = self._new_frame()
            yield self._decompress(data)
            while not self._frame.eof and not self._frame.needs_input:
                yield self._decompress(b"")
            data = self._frame.unused_data

    def _decompress(self, data: bytes | memoryview) -> bytes:
        try:
            return self._frame.decompress(data, PIECE_BYTES)
        except (zstd.ZstdError, zlib.error) as error:
            raise CorruptedArchive(f"it cannot be decompressed ({error})") from error


class _GzipMember:
    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP_HEADER)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:
        piece = self._inflate.decompress(self._inflate.unconsumed_tail or data, max_length)
        # After a full piece there may be more output, even without more input.
        self.needs_input = not self._inflate.unconsumed_tail and len(piece) < max_length
        return piece
