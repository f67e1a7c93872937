"""Extracted data is written to the disk early, and disk errors are not lost."""

import asyncio
import threading
from pathlib import Path

import pytest

from storage_job.writeback import Writeback
from testkit.waiting import until


async def test_its_thread_ends_with_the_block(tmp_path: Path) -> None:
    before = threading.active_count()
    async with Writeback(tmp_path, period_seconds=0.001):
        assert threading.active_count() > before
    # Only the thread of the pool, which waited for the end, remains.
    assert not [each for each in threading.enumerate() if each.name.startswith("Thread-")]


async def extract_until_disk_fails(writeback: Writeback, *, cancelled: bool) -> None:
    async def failed() -> bool:
        return writeback._error is not None

    async with writeback:
        await until(failed, "the disk has failed")
        if cancelled:
            raise asyncio.CancelledError


async def test_a_disk_error_is_raised_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await extract_until_disk_fails(Writeback(tmp_path / "gone", period_seconds=0.001), cancelled=False)


async def test_an_exception_of_the_block_takes_precedence(tmp_path: Path) -> None:
    with pytest.raises(asyncio.CancelledError):
        await extract_until_disk_fails(Writeback(tmp_path / "gone", period_seconds=0.001), cancelled=True)
