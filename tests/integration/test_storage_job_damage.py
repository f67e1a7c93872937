"""Damaged and malicious archives are refused as a whole, and change nothing."""

import gzip
import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from storage_job.errors import JobError, Reason
from storage_job.volume import WORK_NAME
from testkit.trees import Description, describe_tree
from tests.buckets import Bucket
from tests.storage_jobs import KEY, META_KEY, archive, restore, store_archive
from tests.tars import Member, member, tar_of, zstd


def describe_content(tmp_path: Path) -> Description:
    description = describe_tree(tmp_path)
    # Creating and removing the staging directory changes the time of the volume.
    description[b"volume"].pop("mtime_ns")
    return description


async def assert_refused(bucket: Bucket, volume: Path, reason: Reason, **overrides: object) -> None:
    before = describe_content(volume.parent)
    with pytest.raises(JobError) as caught:
        await restore(bucket, volume, **overrides)
    assert caught.value.reason is reason, caught.value.message
    assert describe_content(volume.parent) == before
    assert not (volume / WORK_NAME).exists()


def malicious_members(outside: str) -> dict[str, list[Member]]:
    return {
        "absolute path": [member(f"{outside}/evil", content=b"evil")],
        "parent": [member("../outside/evil", content=b"evil")],
        "through a symlink": [
            member("link", tarfile.SYMTYPE, link=outside),
            member("link/evil", content=b"evil"),
        ],
        "through a relative symlink": [
            member("link", tarfile.SYMTYPE, link="../../../outside"),
            member("link/evil", content=b"evil"),
        ],
        "hard link outside": [member("link", tarfile.LNKTYPE, link=f"{outside}/secret")],
        "device": [member("null", tarfile.CHRTYPE)],
    }


@pytest.mark.parametrize("name", malicious_members(""))
async def test_a_malicious_archive_is_refused(bucket: Bucket, volume: Path, name: str) -> None:
    malicious = malicious_members(str(volume.parent / "outside"))[name]
    await store_archive(bucket, zstd(tar_of([member("good", content=b"good" * 500_000), *malicious])))
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


async def test_a_hard_link_through_a_symlink_does_not_reach_outside(bucket: Bucket, volume: Path) -> None:
    outside = str(volume.parent / "outside")
    link = member("link", tarfile.SYMTYPE, link=outside)
    await store_archive(bucket, zstd(tar_of([link, member("stolen", tarfile.LNKTYPE, link="link/secret")])))
    await assert_refused(bucket, volume, Reason.ACTION_FAILED)
    assert (volume.parent / "outside" / "secret").stat().st_nlink == 1


@pytest.mark.parametrize(
    "damage", ["truncated", "bit flipped", "other meta", "not compressed", "no sha256", "wrong size"]
)
async def test_a_damaged_archive_is_refused(
    bucket: Bucket, volume: Path, tmp_path: Path, damage: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "file").write_bytes(os.urandom(3_000_000))
    await archive(bucket, home)
    content = bytearray(await bucket.read(KEY))
    if damage == "truncated":
        await store_archive(bucket, bytes(content[:-1000]))
    elif damage == "bit flipped":
        content[len(content) // 2] ^= 1
        await bucket.write(KEY, bytes(content))
    elif damage == "other meta":
        await bucket.write(META_KEY, b"sha256:" + hashlib.sha256(b"other").hexdigest().encode())
    elif damage == "not compressed":
        await store_archive(bucket, b"this is not zstd" * 100_000)
    elif damage == "no sha256":
        await bucket.write(META_KEY, b"size:5\n")
    else:
        await bucket.write(META_KEY, await bucket.read(META_KEY) + b"size:5\n")
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


async def test_an_archive_exchanged_together_with_its_meta_is_refused(bucket: Bucket, volume: Path) -> None:
    genuine, planted = (zstd(tar_of([member("file", content=text)])) for text in (b"mine", b"evil"))
    await store_archive(bucket, planted)
    recorded = {"expected_sha256": hashlib.sha256(genuine).hexdigest()}
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED, **recorded)
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED, expected_size=len(planted) + 1)
    await store_archive(bucket, genuine)
    await restore(bucket, volume, **recorded, expected_size=len(genuine))
    assert (volume / "file").read_bytes() == b"mine"


async def test_an_older_archive_is_compared_with_its_record_too(bucket: Bucket, volume: Path) -> None:
    key = KEY.removesuffix("zst") + "gz"
    content = gzip.compress(tar_of([member("file", content=b"mine")]))
    await store_archive(bucket, content, key)
    with pytest.raises(JobError, match="recorded"):
        await restore(bucket, volume, key=key, expected_sha256="0" * 64)
    await restore(bucket, volume, key=key, expected_sha256=hashlib.sha256(content).hexdigest())
    assert (volume / "file").read_bytes() == b"mine"


async def test_an_archive_that_extracts_to_more_than_its_meta_says_is_refused(
    bucket: Bucket, volume: Path
) -> None:
    bomb = zstd(tar_of([member("zeros", content=bytes(30_000_000))]))
    await store_archive(bucket, bomb)
    await bucket.write(META_KEY, await bucket.read(META_KEY) + b"uncompressed:1000000\n")
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


async def test_a_home_that_does_not_fit_is_not_downloaded(bucket: Bucket, volume: Path) -> None:
    await store_archive(bucket, zstd(tar_of([member("small")])))
    await bucket.write(META_KEY, await bucket.read(META_KEY) + b"uncompressed:%d\n" % 10**17)
    await assert_refused(bucket, volume, Reason.ACTION_FAILED)


async def test_a_home_with_a_device_is_not_archived(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("file")
    os.mknod(tmp_path / "null", 0o666 | 0o020000, os.makedev(1, 3))
    with pytest.raises(JobError, match="device") as caught:
        await archive(bucket, tmp_path)
    assert caught.value.reason is Reason.ACTION_FAILED
    assert await bucket.keys() == []
    assert await bucket.unfinished_uploads() == []
