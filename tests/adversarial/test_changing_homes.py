"""A home that changes while it is archived gives an error or a consistent archive.

tar exits with status 1 if a file changes, grows, shrinks or vanishes while it is read, and the job fails. It
cannot notice a file that is overwritten in place within one tick of the kernel's clock.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage_job.errors import Reason
from testkit.trees import describe_tree
from testkit.waiting import until
from tests.adversarial.outcomes import assert_meta_matches, assert_no_processes, failure_of
from tests.buckets import Bucket
from tests.storage_jobs import archive, restore

SIZE = 400_000
ATTEMPTS = 4
WRITERS = {
    "replaced": """
        (home / "new").write_bytes(bytes([65 + turn % 26]) * SIZE)
        (home / "new").rename(home / "file")
    """,
    "growing": """
        with (home / "file").open("ab") as file:
            file.write(b"A" * 100)
    """,
    "shrinking": """
        if turn * 10 % SIZE == 0:
            (home / "file").write_bytes(b"A" * SIZE)
        else:
            os.truncate(home / "file", SIZE - turn * 10 % SIZE)
    """,
    "vanishing": """
        (home / "file").unlink()
        (home / "new").write_bytes(b"A" * SIZE)
        (home / "new").rename(home / "file")
    """,
    "a directory becomes a link": """
        (home / "directory").rename(home / "away")
        (home / "directory").symlink_to(home.parent / "outside")
        (home / "directory").unlink()
        (home / "away").rename(home / "directory")
    """,
}
PROGRAM = """
import itertools, os, sys
from pathlib import Path
home, ready, SIZE = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
for turn in itertools.count(1):
    if turn == 3:
        ready.touch()
    if True:
{body}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "directory").mkdir(parents=True)
    for number in range(50):
        (home / "directory" / f"secret{number}").write_text("mine")
    (home / "file").write_bytes(b"A" * SIZE)
    (tmp_path / "outside").mkdir(exist_ok=True)
    for number in range(50):
        (tmp_path / "outside" / f"secret{number}").write_text("secret")
    return home


@contextmanager
def writing(kind: str, home: Path, ready: Path) -> Iterator[None]:
    command = (sys.executable, "-I", "-S", "-c", PROGRAM.format(body=WRITERS[kind]))
    with subprocess.Popen((*command, str(home), str(ready), str(SIZE))) as writer:
        try:
            yield
            assert writer.poll() is None
        finally:
            writer.kill()


@pytest.mark.parametrize("kind", WRITERS)
async def test_a_changing_home_is_archived_correctly_or_not_at_all(
    bucket: Bucket, home: Path, tmp_path: Path, kind: str
) -> None:
    ready = tmp_path / "ready"

    async def is_writing() -> bool:
        return ready.exists()

    with writing(kind, home, ready):
        await until(is_writing, "the writer has started")
        for attempt in range(ATTEMPTS):
            await archive_and_check(bucket, home, tmp_path / f"restored{attempt}")
    assert await bucket.unfinished_uploads() == []
    await archive(bucket, home, key="archives/workspace/calm/home.tar.zst")
    (tmp_path / "calm").mkdir()
    await restore(bucket, tmp_path / "calm", key="archives/workspace/calm/home.tar.zst")
    assert describe_tree(tmp_path / "calm") == describe_tree(home)


async def archive_and_check(bucket: Bucket, home: Path, restored: Path) -> None:
    key = f"archives/workspace/{restored.name}/home.tar.zst"
    error = await failure_of(archive(bucket, home, key=key))
    if error is not None:
        assert error.reason is Reason.ACTION_FAILED, error.message
        assert not [each for each in await bucket.keys() if each.startswith(key)]
        assert_no_processes()
        return
    await assert_meta_matches(bucket, key)
    restored.mkdir()
    await restore(bucket, restored, key=key)
    for file in [each for each in restored.rglob("*") if each.is_file() and not each.is_symlink()]:
        assert len(set(file.read_bytes())) <= (1 if file.parent == restored else 4), file
        assert file.read_bytes() != b"secret"
