"""Data goes to the disk while more is extracted, and what the disk says of it is not forgotten."""

import asyncio
import threading
from pathlib import Path

import pytest

from storage_job.writeback import Writeback
from testkit.waiting import until


async def test_nothing_of_it_is_left_when_the_block_ends(tmp_path: Path) -> None:
    before = threading.active_count()
    async with Writeback(tmp_path, period_seconds=0.001):
        assert threading.active_count() > before
    # The pool's own thread, which waited for the end, stays.
    assert not [each for each in threading.enumerate() if each.name.startswith("Thread-")]


async def extract_beside(writeback: Writeback, *, cancelled: bool) -> None:
    """Until the disk has failed."""

    async def failed() -> bool:
        return writeback._error is not None

    async with writeback:
        await until(failed, "the disk was asked")
        if cancelled:
            raise asyncio.CancelledError


async def test_error_of_the_disk_is_raised_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await extract_beside(Writeback(tmp_path / "gone", period_seconds=0.001), cancelled=False)


async def test_what_led_to_the_end_matters_more_than_the_disk(tmp_path: Path) -> None:
    with pytest.raises(asyncio.CancelledError):
        await extract_beside(Writeback(tmp_path / "gone", period_seconds=0.001), cancelled=True)
