"""Homes with unusual names, times and kinds of files are restored exactly."""

import os
import socket
import unicodedata
from pathlib import Path

import pytest

from testkit.trees import describe_tree
from tests.adversarial.outcomes import assert_round_trip
from tests.buckets import Bucket
from tests.storage_jobs import archive, restore

CONTROL = bytes(range(1, 32)) + b"\x7f"
NAMES = {
    "every control character": [CONTROL],
    "255 bytes": [b"n" * 255, "\N{PILE OF POO}".encode() * 63 + b"abc"],
    "not UTF-8": [b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", bytes(range(128, 256))],
    "newlines": [b"\n", b"a\nb", b"a\r\n", b"tar: \n: Cannot open"],
    "Windows": [b"CON", b"nul.txt", b"a:b", b"trailing.", b"trailing ", b"C:\\x", b'a*?<>|"'],
    "options": [b"-", b"--", b"-rf", b"--checkpoint-action=exec=sh", b"--exclude=*", b"@file", b"-C"],
    "shell": [b"$(touch owned)", b"`touch owned`", b";touch owned", b"a'b", b"~", b"!", b"&"],
    "patterns": [b"*", b"[a]", b"?", b"{a,b}", b"\\", b"\\*"],
    "dots": [b"...", b". ", b" .", b".. ", b"..a"],
    "letter case": [b"readme", b"README", b"Readme"],
    "names that differ in normalization": [
        unicodedata.normalize(form, "\u00e9\uac00").encode() for form in ("NFC", "NFD")
    ],
    "pax keywords": [b"GNU.sparse.name=x", b"30 path=evil\n", b"PaxHeaders", b"GNUSparseFile.0"],
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def path_of(root: Path, name: bytes) -> Path:
    return root / os.fsdecode(name)


@pytest.mark.parametrize("kind", NAMES)
async def test_unusual_names_are_restored(bucket: Bucket, home: Path, volume: Path, kind: str) -> None:
    for name in NAMES[kind]:
        path_of(home, name).write_bytes(name)
        path_of(home, b"in").mkdir(exist_ok=True)
        path_of(home / "in", name).mkdir()
        path_of(home / "in", name).joinpath("link").symlink_to(path_of(home, name))
    await assert_round_trip(bucket, home, volume)


async def test_unusual_times_and_owners_are_restored(bucket: Bucket, home: Path, volume: Path) -> None:
    # 1901, a nanosecond before and after 1970, and beyond 2038.
    for number, moment in enumerate((-(2**31) * 10**9, -1, 1, (2**31 + 1) * 10**9 + 7)):
        file = home / str(number)
        file.write_text("file")
        if os.geteuid() == 0:
            os.chown(file, 2**31 + number, 2**32 - 2 - number)
        os.utime(file, ns=(moment, moment))
    await assert_round_trip(bucket, home, volume)


async def test_sockets_and_fifos_do_not_block_a_job(bucket: Bucket, home: Path, volume: Path) -> None:
    os.mkfifo(home / "fifo")
    (home / "file").write_text("file")
    before = describe_tree(home)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(home / "agent.sock"))
        listener.listen()
        before[b"."] = describe_tree(home)[b"."]
        await archive(bucket, home)
    await restore(bucket, volume)
    assert describe_tree(volume) == before


async def test_hard_links_with_hundreds_of_names_stay_one_file(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    (home / "a").mkdir()
    (home / "b").mkdir()
    (home / "a" / "first").write_bytes(os.urandom(100_000))
    for number in range(300):
        (home / "ab"[number % 2] / str(number)).hardlink_to(home / "a" / "first")
    await assert_round_trip(bucket, home, volume)
    assert (volume / "a" / "first").stat().st_nlink == 301


async def test_a_restore_does_not_change_the_other_end_of_a_hard_link(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    secret = volume.parent / "outside" / "secret"
    (volume / "linked").hardlink_to(secret)
    (home / "linked").write_text("new")
    before = describe_tree(volume.parent / "outside")
    await assert_round_trip(bucket, home, volume)
    after = describe_tree(volume.parent / "outside")
    assert after == before
    assert secret.stat().st_nlink == 1
