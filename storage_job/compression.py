"""Zstandard and gzip inside the job, in bounded memory whatever the stream holds."""

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

# tar keeps no more than these busy. Each takes some 17 MB, so a machine with many cores needs no more memory.
MOST_WORKERS = 4
PIECE_BYTES = 1024 * 1024
# What follows a frame is copied, so a frame of a few bytes must not be followed by a megabyte.
_SLICE_BYTES = 64 * 1024
_GZIP_HEADER = 16 + zlib.MAX_WBITS


def new_compressor(level: int) -> zstd.ZstdCompressor:
    """Compress in threads. Their number does not change the output, as long as there is one."""
    return zstd.ZstdCompressor(
        options={
            zstd.CompressionParameter.compression_level: level,
            zstd.CompressionParameter.checksum_flag: 1,
            zstd.CompressionParameter.nb_workers: min(len(os.sched_getaffinity(0)), MOST_WORKERS),
        }
    )


class _Frame(Protocol):
    """One Zstandard frame or gzip member; the interface of `zstd.ZstdDecompressor`."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes: ...


class Decompressor:
    """Decompress a stream of frames; no frame makes it hold more than a piece and the window."""

    def __init__(self, suffix: str) -> None:
        # A frame that asks for a window of more than 128 MiB is refused: the library's default.
        self._new_frame: type[_Frame] = {".tar.zst": zstd.ZstdDecompressor, ".tar.gz": _GzipMember}[suffix]
        self._frame = self._new_frame()

    def feed(self, chunk: memoryview) -> Iterator[bytes]:
        """Yield what the next bytes decompress to; raise CorruptedArchive where they do not."""
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
        # A full piece may not have been all, even if no input is left.
        self.needs_input = not self._inflate.unconsumed_tail and len(piece) < max_length
        return piece
