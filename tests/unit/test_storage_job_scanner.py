"""The scanner accepts what tar and tarfile write, sees the same members, and refuses everything else."""

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_job.errors import JobError, Reason
from storage_job.tar.scanner import Limits, TarScanner
from testkit.trees import describe_tree, make_rich_home
from tests.tars import Member, member, tar_of, tar_with_gnu_tar, with_checksum

FORMATS = [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT]


def scan(content: bytes, chunk: int = 65_536, max_bytes: int | None = None) -> TarScanner:
    scanner = TarScanner(Limits(max_bytes))
    view = memoryview(content)
    for start in range(0, len(view), chunk):
        scanner.feed(view[start : start + chunk])
    scanner.finish()
    return scanner


def assert_refused(content: bytes, why: str) -> None:
    with pytest.raises(JobError, match=why) as caught:
        scan(content)
    assert caught.value.reason is Reason.ARCHIVE_CORRUPTED


def test_a_rich_home_is_accepted_in_every_format_of_tar(tmp_path: Path) -> None:
    make_rich_home(tmp_path / "home")
    entries = len(describe_tree(tmp_path / "home"))
    for options in (["--format=posix", "--sparse", "--acls", "--xattrs"], ["--format=gnu", "--sparse"]):
        content = tar_with_gnu_tar(tmp_path / "home", *options, ".")
        for chunk in (1000, 65_536, len(content)):
            scanner = scan(content, chunk)
            assert (scanner.entries, scanner.bytes) == (entries, len(content))
        assert scanner.members.has_root


@pytest.mark.parametrize("regions", [1, 5, 200])
@pytest.mark.parametrize("tar_format", ["posix", "gnu"])
def test_sparse_maps_of_any_length_are_followed(tmp_path: Path, regions: int, tar_format: str) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        for region in range(regions):
            file.seek(region * 65_536)
            file.write(b"x" * 100)
    content = tar_with_gnu_tar(tmp_path, f"--format={tar_format}", "--sparse", "sparse", "sparse")
    assert scan(content, 777).entries == 2


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=120).filter(
    lambda name: name not in (".", "..")
)
MEMBERS = st.lists(
    st.one_of(
        st.builds(member, TEXT, st.just(tarfile.REGTYPE), st.binary(max_size=2000)),
        st.builds(member, TEXT, st.just(tarfile.DIRTYPE)),
        st.builds(member, TEXT, st.just(tarfile.SYMTYPE), st.just(b""), TEXT),
        st.builds(member, TEXT, st.just(tarfile.LNKTYPE), st.just(b""), TEXT),
        st.builds(member, TEXT, st.just(tarfile.FIFOTYPE)),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=50)
@given(MEMBERS, st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]), st.integers(100, 3000))
def test_scanner_and_tarfile_see_the_same_members(members: list[Member], tar_format: int, chunk: int) -> None:
    content = tar_of(members, tar_format)
    seen: list[bytes] = []
    scanner = TarScanner()
    admit = scanner.members.admit
    scanner.members.admit = lambda kind, name, link: (seen.append(name), admit(kind, name, link))  # type: ignore[assignment, func-returns-value]
    for start in range(0, len(content), chunk):
        scanner.feed(memoryview(content)[start : start + chunk])
    scanner.finish()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        names = [info.name for info in archive]
    assert [name.decode().rstrip("/") for name in seen] == names


@settings(deadline=None)
@given(st.binary(max_size=3000))
def test_noise_is_refused_without_a_crash(noise: bytes) -> None:
    with pytest.raises(JobError):
        scan(noise + b"!")


@settings(deadline=None)
@given(st.data())
def test_a_changed_byte_never_crashes_the_scanner(data: st.DataObject) -> None:
    content = bytearray(
        tar_of([member("a" * 150, content=b"x" * 600), member("b", tarfile.SYMTYPE, link="c")])
    )
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        scan(bytes(content))
    except JobError as error:
        assert error.reason is Reason.ARCHIVE_CORRUPTED  # noqa: PT017 (either outcome is fine, a crash is not)


MALICIOUS_MEMBERS = {
    "absolute": ([member("/etc/evil")], "absolute"),
    "parent": ([member("../evil")], r"\.\."),
    "parent in the middle": ([member("a/../../evil")], r"\.\."),
    "parent at the end": ([member("a/..", tarfile.DIRTYPE)], r"\.\."),
    "long parent": ([member("a/" * 100 + "../" * 101 + "evil")], r"\.\."),
    "hard link to absolute": ([member("a", tarfile.LNKTYPE, link="/etc/passwd")], "absolute"),
    "hard link to parent": ([member("a", tarfile.LNKTYPE, link="../passwd")], r"\.\."),
    "character device": ([member("a", tarfile.CHRTYPE)], "device"),
    "block device": ([member("a", tarfile.BLKTYPE)], "device"),
    "contiguous file": ([member("a", tarfile.CONTTYPE)], "unknown type"),
    "old file type": ([member("a", tarfile.AREGTYPE)], "unknown type"),
    "symlink for a root": ([member(".", tarfile.SYMTYPE, link="/etc")], "root"),
    "file through a symlink": ([member("a", tarfile.SYMTYPE, link="/etc"), member("a/evil")], "link"),
    "directory below a symlink": (
        [member("a", tarfile.SYMTYPE, link="b"), member("a/evil", tarfile.DIRTYPE)],
        "link",
    ),
    "directory turned symlink": (
        [
            member("d", tarfile.DIRTYPE),
            member("d", tarfile.SYMTYPE, link="/etc"),
            member("d/evil"),
        ],
        "link",
    ),
    "deep symlink": (
        [
            member("d", tarfile.DIRTYPE),
            member("d/e", tarfile.SYMTYPE, link="/"),
            member("d/e/f/evil"),
        ],
        "link",
    ),
}


@pytest.mark.parametrize("tar_format", FORMATS[:2])
@pytest.mark.parametrize("name", MALICIOUS_MEMBERS)
def test_malicious_members_are_refused(name: str, tar_format: int) -> None:
    members, why = MALICIOUS_MEMBERS[name]
    assert_refused(tar_of([member("good"), *members], tar_format), why)


def test_absolute_and_dangling_symlinks_are_accepted() -> None:
    links = [
        member(f"link{index}", tarfile.SYMTYPE, link=link) for index, link in enumerate(["/usr/bin", "../x"])
    ]
    assert scan(tar_of([*links, member("fifo", tarfile.FIFOTYPE)])).entries == 3


def test_missing_directories_are_accepted_before_the_first_symlink() -> None:
    assert scan(tar_of([member("a/b/c"), member("d/e")])).entries == 2


GOOD = tar_of([member("file", content=b"x" * 1000)], tarfile.USTAR_FORMAT)


def changed(start: int, value: bytes) -> bytes:
    return with_checksum(GOOD[:start] + value + GOOD[start + len(value) : 512]) + GOOD[512:]


def pax(payload: bytes) -> bytes:
    header = bytearray(tar_of([member("pax", content=payload)], tarfile.USTAR_FORMAT)[:512])
    header[156:157] = b"x"
    return with_checksum(bytes(header)) + payload + bytes(-len(payload) % 512) + GOOD


def record(keyword: bytes, value: bytes) -> bytes:
    body = b" " + keyword + b"=" + value + b"\n"
    length = len(body)
    while length != len(body) + len(str(length)):
        length = len(body) + len(str(length))
    return str(length).encode() + body


SPARSE = b"".join(
    record(b"GNU.sparse." + keyword, value)
    for keyword, value in ((b"major", b"1"), (b"minor", b"0"), (b"name", b"file"), (b"realsize", b"9999"))
)
INVALID_STREAMS = {
    "nothing": (b"", "too early"),
    "no end": (GOOD[:1536], "too early"),
    "cut in the data": (GOOD[:700], "too early"),
    "one empty block only": (GOOD[:1536] + bytes(512), "too early"),
    "a lone empty block": (GOOD[:1536] + bytes(512) + GOOD, "follows its end"),
    "a second archive": (GOOD + GOOD, "follows its end"),
    "wrong checksum": (b"X" + GOOD[1:], "checksum"),
    "v7 header": (changed(257, bytes(8)), "unknown format"),
    "negative size": (changed(124, b"\xff" * 12), "number"),
    "huge size": (changed(124, b"\x80" + b"\xff" * 11), "number"),
    "text for a size": (changed(124, b"12x45678901\0"), "number"),
    "global pax header": (changed(156, b"g"), "unknown type"),
    "volume label": (changed(156, b"V"), "unknown type"),
    "directory with content": (changed(156, b"5"), "content"),
    "symlink with content": (changed(156, b"2target"), "content"),
    "file with a directory's name": (changed(0, b"file/\0"), "name of a directory"),
    "no name": (changed(0, bytes(100)), "empty"),
    "pax without equals sign": (pax(b"8 path\n\n"), "malformed"),
    "pax with a wrong length": (pax(b"99 path=a\n"), "malformed"),
    "pax with a leading zero": (pax(b"010 path=a\n"), "malformed"),
    "pax without line end": (pax(b"10 path=ab"), "malformed"),
    "pax path with a zero byte": (pax(record(b"path", b"good\0/../evil")), "impossible name"),
    "pax absolute path": (pax(record(b"path", b"/evil")), "absolute"),
    "pax overrides a good name": (pax(record(b"path", b"good") + record(b"path", b"../evil")), r"\.\."),
    "pax signed size": (pax(record(b"size", b"-1")), "number"),
    "pax smaller size": (pax(record(b"size", b"0")), "number"),
    "pax with old sparse keywords": (pax(record(b"GNU.sparse.map", b"0,1")), "unsupported keyword"),
    "pax with a volume keyword": (pax(record(b"GNU.volume.offset", b"1")), "unsupported keyword"),
    "pax sparse name only": (pax(record(b"GNU.sparse.name", b"file")), "unsupported version"),
    "sparse name outside": (pax(SPARSE.replace(b"file", b"/etc")), "absolute"),
    "sparse map of noise": (pax(SPARSE), "map is unreadable|invalid number"),
    "empty pax header": (pax(b""), "empty"),
    "pax twice": (pax(record(b"comment", b"a"))[:1024] + pax(record(b"comment", b"b")), "repeated"),
    "pax too large": (pax(record(b"comment", b"x" * 5_000_000)), "too large"),
}


@pytest.mark.parametrize("name", INVALID_STREAMS)
def test_invalid_streams_are_refused(name: str) -> None:
    content, why = INVALID_STREAMS[name]
    assert_refused(content, why)


def sparse_stream(sparse_map: bytes, stored: int) -> bytes:
    """Return a sparse member whose map may not match its data: tar would read into the next member."""
    data = sparse_map + bytes(-len(sparse_map) % 512) + b"x" * stored
    return pax(SPARSE)[:1024] + tar_of([member("file", content=data)], tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    ("sparse_map", "stored", "accepted"),
    [
        (b"1\n0\n512\n", 512, True),
        (b"2\n0\n512\n4096\n100\n", 612, True),
        (b"1\n0\n1024\n", 512, False),
        (b"1\n0\n512\n", 1024, False),
        (b"2\n0\n100\n4096\n412\n", 512, False),
        (b"1\n0\n512\nx", 512, False),
        (b"9\n0\n512\n", 512, False),
    ],
)
def test_a_sparse_map_must_match_its_data(sparse_map: bytes, stored: int, accepted: bool) -> None:
    content = sparse_stream(sparse_map, stored)
    if accepted:
        assert scan(content).entries == 1
    else:
        assert_refused(content, "map|number")


def test_extraction_stops_at_the_limit() -> None:
    scan(GOOD, max_bytes=len(GOOD))
    with pytest.raises(JobError, match="more than"):
        scan(GOOD, max_bytes=len(GOOD) - 1)
