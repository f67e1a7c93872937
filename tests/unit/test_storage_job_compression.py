"""The storage job decompresses any split of the input and many frames in bounded pieces."""

import gzip
import os
from collections.abc import Callable

import pytest

from storage_job.compression import PIECE_BYTES, Decompressor, new_compressor
from storage_job.errors import CorruptedArchive
from tests.tars import zstd

SKIPPABLE = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
CONTENT = os.urandom(100_000) + bytes(3 * PIECE_BYTES) + b"the end"
Compress = Callable[[bytes], bytes]
FORMATS: list[tuple[str, Compress]] = [(".tar.zst", zstd), (".tar.gz", gzip.compress)]


def decompress(suffix: str, compressed: bytes, step: int) -> bytes:
    decompressor = Decompressor(suffix)
    pieces: list[bytes] = []
    for start in range(0, len(compressed), step):
        pieces += decompressor.feed(memoryview(compressed)[start : start + step])
    decompressor.finish()
    assert max(map(len, pieces)) <= PIECE_BYTES
    return b"".join(pieces)


@pytest.mark.parametrize("step", [1000, 1001, 10_000_000])
@pytest.mark.parametrize(("suffix", "compress"), FORMATS)
def test_any_split_of_many_frames_gives_the_content(suffix: str, compress: Compress, step: int) -> None:
    compressed = compress(CONTENT) + compress(b"") + compress(CONTENT)
    assert decompress(suffix, compressed, step) == CONTENT * 2


def test_bytes_may_arrive_one_by_one() -> None:
    for suffix, compress in FORMATS:
        assert decompress(suffix, compress(b"content") * 3, 1) == b"content" * 3


def test_skippable_frames_are_skipped() -> None:
    assert decompress(".tar.zst", SKIPPABLE + zstd(b"content") + SKIPPABLE, 5) == b"content"


@pytest.mark.parametrize("garbage", [b"noise", bytes(512)])
@pytest.mark.parametrize(("suffix", "compress"), FORMATS)
def test_garbage_after_a_frame_is_refused(suffix: str, compress: Compress, garbage: bytes) -> None:
    with pytest.raises(CorruptedArchive):
        decompress(suffix, compress(CONTENT) + garbage, 10_000)


@pytest.mark.parametrize(("suffix", "compress"), FORMATS)
def test_a_stream_that_ends_within_a_frame_is_refused(suffix: str, compress: Compress) -> None:
    compressed = compress(CONTENT)
    for length in (0, 1, len(compressed) // 2, len(compressed) - 1):
        decompressor = Decompressor(suffix)
        list(decompressor.feed(memoryview(compressed[:length])))
        with pytest.raises(CorruptedArchive, match="ends too early"):
            decompressor.finish()


def test_the_number_of_processors_does_not_change_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(1_000_000) * 30
    results = set()
    for processors in (1, 2, 64):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, count=processors: range(count))
        compressor = new_compressor(3)
        results.add(compressor.compress(content) + compressor.flush())
    assert len(results) == 1
