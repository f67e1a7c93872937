"""The verify job compares a stored archive with a directory and reports every difference."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from storage_job.errors import JobError, Reason
from testkit.needs import need_root
from testkit.trees import make_rich_home, make_socket
from tests.buckets import Bucket
from tests.storage_jobs import KEY, archive, verify


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_rich_home(tmp_path / "home")
    return tmp_path / "home"


async def test_a_home_is_equal_to_its_archive(bucket: Bucket, home: Path) -> None:
    make_socket(home / "socket")
    (home / ".codehub-restore").mkdir()
    made = await archive(bucket, home)
    verdict = await verify(bucket, home)
    assert verdict.difference is None
    assert (verdict.entries, verdict.sha256, verdict.bytes) == (made.entries, made.sha256, made.bytes)


def _change_content(home: Path) -> None:
    """Change it in place, with the same size and times."""
    file = home / "project0" / "src" / "file0.bin"
    status = file.stat()
    file.write_bytes(random.Random(1).randbytes(status.st_size))  # noqa: S311 (data for tests)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _break_a_link(home: Path) -> None:
    file = home / "project0" / "hard"
    status = file.stat()
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace_by_directory(home: Path) -> None:
    (home / "empty").unlink()
    (home / "empty").mkdir()


def _replace_link(home: Path) -> None:
    link = home / "venv" / "python"
    status = link.lstat()
    link.unlink()
    link.symlink_to("/usr/bin/python2")
    os.utime(link, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


def _touch(home: Path) -> None:
    """Change the time by a single nanosecond."""
    status = (home / "secret").stat()
    os.utime(home / "secret", ns=(status.st_atime_ns, status.st_mtime_ns + 1))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "content": (_change_content, "'project0/src/file0.bin' differs in its content"),
    "size": (lambda home: (home / "empty").write_text("more"), "'empty' differs in its"),
    "mode": (lambda home: (home / "secret").chmod(0o644), "'secret' differs in its mode"),
    "owner": (lambda home: os.chown(home / "secret", 4321, -1), "'secret' differs in its owner"),
    "time": (_touch, "'secret' differs in its modification time"),
    "new file": (
        lambda home: (home / "empty-directory" / "new").touch(),
        "'empty-directory/new' is not in the archive",
    ),
    "removed file": (lambda home: (home / "empty").unlink(), "'empty' is missing from the directory"),
    "type": (_replace_by_directory, "'empty' differs in its type"),
    "target": (_replace_link, "'venv/python' differs in its target"),
    "broken hard link": (_break_a_link, "differs in its hard links"),
    "attribute": (
        lambda home: os.setxattr(home / "attributes", "user.comment", b"other"),
        "'attributes' differs in its extended attributes",
    ),
    "ACL": (
        lambda home: os.removexattr(home / "shared", "system.posix_acl_default"),
        "'shared' differs in its extended attributes",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_every_difference_is_found(bucket: Bucket, home: Path, change: str) -> None:
    if change == "owner":
        need_root()
    await archive(bucket, home)
    make_change, expected = CHANGES[change]
    make_change(home)
    verdict = await verify(bucket, home)
    assert expected in (verdict.difference or "")


async def test_many_differences_are_summarized(bucket: Bucket, home: Path) -> None:
    await archive(bucket, home)
    for number in range(10):
        (home / f"new{number}").touch()
    # The time of the directory itself is the first of eleven.
    assert ((await verify(bucket, home)).difference or "").endswith("; 8 more")


async def test_a_changed_archive_is_refused(bucket: Bucket, home: Path) -> None:
    await archive(bucket, home)
    content = bytearray(await bucket.read(KEY))
    content[-10] ^= 1
    await bucket.write(KEY, bytes(content))
    with pytest.raises(JobError) as raised:
        await verify(bucket, home)
    assert raised.value.reason is Reason.ARCHIVE_CORRUPTED
