"""A restored home equals the archived one, and nothing else remains."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from storage_job.errors import JobError, Reason
from storage_job.volume import WORK_NAME
from testkit.trees import describe_tree, make_rich_home, make_socket
from tests.buckets import Bucket
from tests.storage_jobs import KEY, META_KEY, archive, request_for, restore, run_job
from tests.tars import tar_with_gnu_tar


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_rich_home(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    return tmp_path / "volume"


def set_mode_and_time(path: Path, mode: int, mtime_ns: int) -> None:
    path.chmod(mode)
    os.utime(path, ns=(1, mtime_ns))


async def test_every_attribute_of_a_home_survives(bucket: Bucket, home: Path, volume: Path) -> None:
    os.setxattr(home, "user.root", b"attribute of the root")
    set_mode_and_time(home, 0o3751, 1_234_567_890_123_456_789)
    before = describe_tree(home)
    archived = await archive(bucket, home)
    restored = await restore(bucket, volume)
    assert describe_tree(volume) == before
    assert describe_tree(home) == before
    assert restored.entries == archived.entries == len(before)
    assert restored.bytes == archived.bytes
    assert restored.sha256 == archived.sha256 == hashlib.sha256(await bucket.read(KEY)).hexdigest()


async def test_restore_removes_what_is_not_in_the_archive(bucket: Bucket, home: Path, volume: Path) -> None:
    make_rich_home(volume, seed=1)
    (volume / "extra" / "nested").mkdir(parents=True)
    (volume / "extra").chmod(0o500)
    (volume / "empty").unlink()
    (volume / "empty").mkdir()
    os.setxattr(volume, "user.extra", b"removed by the restore")
    before = describe_tree(home)
    await archive(bucket, home)
    await restore(bucket, volume)
    assert describe_tree(volume) == before


async def test_restoring_twice_gives_the_same(bucket: Bucket, home: Path, volume: Path) -> None:
    await archive(bucket, home)
    await restore(bucket, volume)
    once = describe_tree(volume)
    await restore(bucket, volume)
    assert describe_tree(volume) == once


async def test_archiving_an_unchanged_home_gives_the_same_bytes(bucket: Bucket, tmp_path: Path) -> None:
    home = tmp_path / "plain"
    home.mkdir()
    (home / "file").write_bytes(b"content" * 100_000)
    first = await archive(bucket, home)
    second = await archive(bucket, home, key="archives/workspace/second/home.tar.zst")
    assert first == second


async def test_default_acl_of_the_volume_does_not_leak_into_the_home(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    os.setxattr(volume, "system.posix_acl_default", os.getxattr(home / "shared", "system.posix_acl_default"))
    set_mode_and_time(volume, 0o2777, 0)
    before = describe_tree(home)
    await archive(bucket, home)
    await restore(bucket, volume)
    assert describe_tree(volume) == before


async def test_sockets_are_left_out(bucket: Bucket, home: Path, volume: Path) -> None:
    before = describe_tree(home / "project0")
    make_socket(home / "project1" / "socket")
    await archive(bucket, home)
    await restore(bucket, volume)
    assert not (volume / "project1" / "socket").exists()
    assert describe_tree(volume / "project0") == before


async def test_leftovers_of_a_crashed_restore_are_not_archived(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    (home / WORK_NAME / "staging").mkdir(parents=True)
    (home / WORK_NAME / "staging" / "half").write_text("half")
    (home / "project0" / WORK_NAME).mkdir()
    await archive(bucket, home)
    await restore(bucket, volume)
    assert not (volume / WORK_NAME).exists()
    assert (volume / "project0" / WORK_NAME).is_dir()


async def test_a_gzip_archive_of_an_older_installation_is_restored(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    content = gzip.compress(tar_with_gnu_tar(home, "--format=gnu", "--sparse", "."), 1)
    key = KEY.removesuffix(".zst") + ".gz"
    await bucket.write(key, content)
    await bucket.write(key + ".meta", f"sha256:{hashlib.sha256(content).hexdigest()}".encode())
    await restore(bucket, volume, key=key)
    old, new = describe_tree(home), describe_tree(volume)
    assert [(name, facts.get("sha256"), facts["mode"]) for name, facts in new.items()] == [
        (name, facts.get("sha256"), facts["mode"]) for name, facts in old.items()
    ]
    assert new[b"sparse"]["sparse"]


async def test_an_empty_archive_restores_to_an_empty_home(bucket: Bucket, volume: Path) -> None:
    set_mode_and_time(volume, 0o751, 0)
    os.chown(volume, 1000, 1000)
    (volume / "old").write_text("old")
    run = await run_job("create-empty", request_for(bucket, Path("/nonexistent")))
    assert run.code == 0
    assert (await bucket.read(META_KEY)).startswith(b"sha256:")
    outcome = await restore(bucket, volume)
    assert outcome.entries == 0
    description = describe_tree(volume)
    assert description.keys() == {b"."}
    assert (description[b"."]["mode"], description[b"."]["owner"]) == (0o751, (1000, 1000))


async def test_a_missing_volume_is_reported(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="that it is mounted") as caught:
        await archive(bucket, tmp_path / "absent")
    assert caught.value.reason is Reason.ACTION_FAILED
