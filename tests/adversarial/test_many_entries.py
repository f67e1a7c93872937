"""Homes with very many files take no more memory."""

import asyncio
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.adversarial.measured_job import measured_job
from tests.buckets import Bucket
from tests.storage_jobs import store_archive
from tests.tars import zstd

# Enough to notice memory that grows with the number of files; a million takes minutes.
ENTRIES = 100_000
JOB_BYTES = 200 * 1024 * 1024
SECOND_KEY = "archives/workspace/again/home.tar.zst"


def header(name: str, kind: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o755
    return info.tobuf(tarfile.USTAR_FORMAT)


def flat(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield header(f"{number}", tarfile.REGTYPE)


def nested(count: int) -> Iterator[bytes]:
    for number in range(count):
        if number % 1000 == 0:
            yield header(f"{number // 1000}", tarfile.DIRTYPE)
        yield header(f"{number // 1000}/{number}", tarfile.REGTYPE)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", [flat, nested])
async def test_a_home_with_very_many_files_takes_no_more_memory(
    bucket: Bucket, volume: Path, shape: Callable[[int], Iterator[bytes]]
) -> None:
    await store_archive(bucket, await asyncio.to_thread(lambda: zstd(b"".join(shape(ENTRIES)) + bytes(1024))))
    restored = await measured_job(bucket, "restore", volume)
    assert (restored.code, restored.last["event"]) == (0, "done")
    archived = await measured_job(bucket, "archive", volume, key=SECOND_KEY)
    assert archived.last["entries"] >= restored.last["entries"] >= ENTRIES
    assert max(restored.peak_bytes, archived.peak_bytes) < JOB_BYTES
