"""Truncated, changed and mixed-up archives are refused as a whole, wherever the damage is."""

import gzip
import os
import tarfile
from pathlib import Path

import pytest

from storage_job.errors import Reason
from tests.adversarial.outcomes import assert_refused, content_of, failure_of
from tests.buckets import Bucket
from tests.storage_jobs import KEY, META_KEY, archive, restore, store_archive
from tests.tars import member, tar_of, zstd

OTHER_KEY = "archives/other/operation/home.tar.zst"
GZIP_KEY = KEY.removesuffix(".zst") + ".gz"
LONG = "long/" + "n" * 150
TAR = tar_of(
    [
        member(".", tarfile.DIRTYPE),
        member("long", tarfile.DIRTYPE),
        member(LONG, content=bytes(range(256)) * 1000),
        member("link", tarfile.SYMTYPE, link="nowhere"),
        member("last", content=b"last"),
    ]
)
COMPRESSED = zstd(TAR)
# The name does not fit into a header, so a pax header with its payload precedes the third one.
PAX, LONG_HEADER = 1024, 2048
END = TAR.rindex(b"last", LONG_HEADER) + 512
POSITIONS = {
    "nothing": 0,
    "one byte": 1,
    "within the magic": 3,
    "after the magic": 4,
    "within the frame's header": 8,
    "half": len(COMPRESSED) // 2,
    "before the checksum": len(COMPRESSED) - 4,
    "within the checksum": len(COMPRESSED) - 1,
}
TAR_POSITIONS = {
    "nothing": 0,
    "within the first header": 100,
    "after the first header": 512,
    "within a pax header": PAX + 300,
    "between a pax header and its payload": PAX + 512,
    "between a pax header and its member": LONG_HEADER,
    "after a header": LONG_HEADER + 512,
    "within a file": LONG_HEADER + 512 + 1000,
    "before the end": END,
    "within the end": END + 512,
}
FIELDS = {
    "name": 0,
    "mode": 100,
    "size": 124,
    "checksum": 148,
    "type": 156,
    "link": 157,
    "magic": 257,
    "prefix": 345,
}


def flipped(content: bytes, position: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("position", POSITIONS)
async def test_a_truncated_archive_is_refused_although_its_meta_matches(
    bucket: Bucket, volume: Path, position: str
) -> None:
    await store_archive(bucket, COMPRESSED[: POSITIONS[position]])
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


@pytest.mark.parametrize("position", TAR_POSITIONS)
async def test_a_truncated_tar_in_a_complete_frame_is_refused(
    bucket: Bucket, volume: Path, position: str
) -> None:
    await store_archive(bucket, zstd(TAR[: TAR_POSITIONS[position]]))
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


@pytest.mark.parametrize("damage", ["nothing", "half", "no footer", "wrong length"])
async def test_a_damaged_gzip_archive_is_refused(bucket: Bucket, volume: Path, damage: str) -> None:
    whole = gzip.compress(TAR)
    damaged = {
        "nothing": b"",
        "half": whole[: len(whole) // 2],
        "no footer": whole[:-8],
        "wrong length": flipped(whole, -1),
    }
    await store_archive(bucket, damaged[damage], GZIP_KEY)
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED, key=GZIP_KEY)


@pytest.mark.parametrize("tenth", range(11))
async def test_a_flipped_bit_is_noticed_anywhere(bucket: Bucket, volume: Path, tenth: int) -> None:
    await store_archive(bucket, COMPRESSED)
    await bucket.write(KEY, flipped(COMPRESSED, tenth * (len(COMPRESSED) - 1) // 10))
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


@pytest.mark.parametrize("tenth", range(11))
async def test_a_flipped_bit_with_a_matching_meta_changes_no_file(
    bucket: Bucket, volume: Path, tmp_path: Path, tenth: int
) -> None:
    (tmp_path / "expected").mkdir()
    await store_archive(bucket, COMPRESSED)
    await restore(bucket, tmp_path / "expected")
    before = content_of(volume)
    await store_archive(bucket, flipped(COMPRESSED, tenth * (len(COMPRESSED) - 1) // 10))
    error = await failure_of(restore(bucket, volume))
    if error is not None:
        assert error.reason is Reason.ARCHIVE_CORRUPTED
        assert content_of(volume) == before
    else:
        # Some bits of a frame do not affect the content.
        assert content_of(volume) == content_of(tmp_path / "expected")


@pytest.mark.parametrize("header", [512, PAX, LONG_HEADER])
@pytest.mark.parametrize("field", FIELDS)
async def test_a_flipped_bit_in_a_tar_header_is_noticed(
    bucket: Bucket, volume: Path, field: str, header: int
) -> None:
    await store_archive(bucket, zstd(flipped(TAR, header + FIELDS[field])))
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


@pytest.mark.parametrize("lines", [1, 4], ids=["older meta", "current meta"])
async def test_swapped_metas_are_noticed_and_can_be_swapped_back(
    bucket: Bucket, volume: Path, tmp_path: Path, lines: int
) -> None:
    metas = []
    for key in (KEY, OTHER_KEY):
        home = tmp_path / key.split("/")[1]
        home.mkdir()
        (home / "file").write_bytes(os.urandom(1000))
        await archive(bucket, home, key=key)
        metas.append(b"".join((await bucket.read(key + ".meta")).splitlines(keepends=True)[:lines]))
    await bucket.write(META_KEY, metas[1])
    await bucket.write(OTHER_KEY + ".meta", metas[0])
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED, key=OTHER_KEY)
    await bucket.write(META_KEY, metas[0])
    await restore(bucket, volume)
    assert (volume / "file").read_bytes() == (tmp_path / "workspace" / "file").read_bytes()


async def test_a_second_archive_after_the_first_is_refused(bucket: Bucket, volume: Path) -> None:
    await store_archive(bucket, COMPRESSED + zstd(tar_of([member("hidden", content=b"hidden")])))
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


async def test_noise_after_the_frame_is_refused(bucket: Bucket, volume: Path) -> None:
    await store_archive(bucket, COMPRESSED + b"noise" * 1000)
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)
