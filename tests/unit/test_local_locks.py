"""Locks end with their holders, and a replaced lock file does not count."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from codehub.adapters.local.locks import acquire_alive_lock, is_locked, lock_async, open_lock, try_lock


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_a_lock_lasts_as_long_as_any_process_that_inherited_it(lock: Path) -> None:
    assert not is_locked(lock)
    life = acquire_alive_lock(lock)
    child = subprocess.Popen(("/bin/sleep", "1000"), pass_fds=(life,))
    os.close(life)
    assert is_locked(lock)
    assert is_locked(lock)
    with pytest.raises(BlockingIOError):
        acquire_alive_lock(lock)
    child.kill()
    child.wait()
    assert not is_locked(lock)


def test_a_lock_has_one_holder_and_leaves_no_file(lock: Path) -> None:
    with try_lock(lock):
        with pytest.raises(BlockingIOError), try_lock(lock):
            pass
        assert lock.exists()
    assert not lock.exists()
    with try_lock(lock):
        pass


def test_a_file_that_was_replaced_before_it_was_locked_does_not_count(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_too_early(path: Path) -> int:
        descriptor = open_lock(path)
        path.unlink()
        path.touch()
        return descriptor

    monkeypatch.setattr("codehub.adapters.local.locks.open_lock", open_too_early)
    with pytest.raises(BlockingIOError), try_lock(lock):
        pass


async def test_waiting_callers_get_the_lock_one_by_one(lock: Path) -> None:
    inside: list[int] = []

    async def visit(number: int) -> None:
        async with lock_async(lock):
            inside.append(number)
            await asyncio.sleep(0)
            assert inside == [number]
            inside.remove(number)

    await asyncio.gather(*(visit(number) for number in range(8)))
    assert inside == []
