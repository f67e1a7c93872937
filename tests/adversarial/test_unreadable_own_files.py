"""A job that runs as the owner of a home archives what the owner cannot read, with the modes as they were."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage_job.volume import WORK_NAME
from testkit.needs import need_root
from testkit.ordinary_user import UID, as_ordinary_user
from testkit.trees import Description, describe_tree, make_rich_home
from tests.buckets import Bucket
from tests.storage_jobs import REPOSITORY, path_with_fake, request_for

KILL_JOB = "kill -9 $PPID"


@pytest.fixture
def directory() -> Iterator[Path]:
    """Return a directory that an ordinary user can reach, unlike those of pytest."""
    need_root()
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    # One tree is too deep for Python's own rmtree.
    subprocess.run(["/bin/rm", "-rf", directory], check=True)


@pytest.fixture
def home(directory: Path) -> Path:
    home = directory / "home"
    home.mkdir()
    for name, mode in {"nothing": 0, "write-only": 0o200, "setuid": 0o4011}.items():
        (home / name).write_text(name)
        (home / name).chmod(mode)
    (home / "another-name").hardlink_to(home / "nothing")
    (home / ("long" * 40)).mkdir()
    for name, mode in {"closed": 0, "listable": 0o400, "passable": 0o100, "long" * 40: 0}.items():
        (home / name / "inner").mkdir(parents=True)
        (home / name / "inner" / "file").write_text(name)
        (home / name / "inner" / "file").chmod(0)
        (home / name / "inner").chmod(0o300)
        (home / name).chmod(mode)
    give_to_user(home)
    return home


@pytest.fixture
def volume(directory: Path) -> Path:
    """Return a new volume as Kubernetes provides it: its root belongs to root."""
    volume = directory / "volume"
    volume.mkdir()
    (volume / "lost+found").mkdir(mode=0o700)
    os.chown(volume, 0, UID)
    volume.chmod(0o2775)
    return volume


def give_to_user(home: Path) -> None:
    for parent, directories, files in os.walk(home):
        for name in [".", *directories, *files]:
            path = Path(parent) / name
            mode = stat.S_IMODE(path.lstat().st_mode)
            os.chown(path, UID, UID, follow_symlinks=False)
            if not path.is_symlink():
                # A change of the owner clears these bits.
                path.chmod(mode)


def run_as_user(operation: str, request: dict[str, Any], path: str = os.environ["PATH"]) -> dict[str, Any]:
    """Run a job without any capability; return its last event, or nothing if it was killed."""
    job = (sys.executable, "-m", "storage_job", operation)
    run = subprocess.run(
        as_ordinary_user(job),
        input=json.dumps(request).encode(),
        capture_output=True,
        cwd=REPOSITORY,
        check=False,
        env={**os.environ, "PATH": path},
    )
    if run.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return {}
    return dict(json.loads(run.stdout.splitlines()[-1]))


def below_root(root: Path) -> Description:
    """Describe the tree without its root, which is the volume's, and without what is not the home's."""
    found = describe_tree(root)
    return {name: facts for name, facts in found.items() if name not in (b".", b"lost+found")}


async def test_unreadable_files_are_restored_as_they_were(bucket: Bucket, home: Path, volume: Path) -> None:
    before = below_root(home)
    archived = run_as_user("archive", request_for(bucket, home))
    assert archived["event"] == "done", archived
    assert below_root(home) == before
    assert not (home / WORK_NAME).exists()
    restored = run_as_user("restore", request_for(bucket, volume))
    assert restored["event"] == "done", restored
    assert below_root(volume) == before


async def test_a_rich_home_is_restored_to_a_volume_with_a_foreign_root(
    bucket: Bucket, directory: Path, volume: Path
) -> None:
    home = directory / "rich"
    make_rich_home(home)
    give_to_user(home)
    expected = below_root(home)
    # Only root can give a file capabilities, and nobody can use them in a workspace.
    expected[b"attributes"]["xattrs"].pop("security.capability", None)  # type: ignore[attr-defined]
    archived = run_as_user("archive", request_for(bucket, home))
    assert archived["event"] == "done", archived
    (volume / "old").write_text("old")
    restored = run_as_user("restore", request_for(bucket, volume))
    assert restored["event"] == "done", restored
    assert below_root(volume) == expected
    assert (volume / "lost+found").stat().st_uid == 0
    assert stat.S_IMODE(volume.stat().st_mode) == 0o2775


async def test_an_unreadable_file_can_be_very_deep(bucket: Bucket, directory: Path) -> None:
    deep = directory / "deep"
    deep.mkdir()
    give_to_user(deep)
    for _ in range(1200):
        deep = deep / "d"
        deep.mkdir()
        os.chown(deep, UID, UID)
    (deep / "file").write_text("deep")
    (deep / "file").chmod(0)
    os.chown(deep / "file", UID, UID)
    archived = run_as_user("archive", request_for(bucket, directory / "deep"))
    assert (archived["event"], archived["entries"]) == ("done", 1202)
    assert stat.S_IMODE((deep / "file").stat().st_mode) == 0


async def test_an_archive_leaves_out_what_belongs_to_the_file_system(bucket: Bucket, volume: Path) -> None:
    (volume / "thesis").write_text("three years of work")
    archived = run_as_user("archive", request_for(bucket, volume))
    # The root and the file.
    assert (archived["event"], archived["entries"]) == ("done", 2)


async def test_the_next_job_puts_back_the_modes_that_a_killed_one_changed(
    bucket: Bucket, home: Path, directory: Path
) -> None:
    before = below_root(home)
    killing = path_with_fake(directory / "fakes", "tar", KILL_JOB)
    assert run_as_user("archive", request_for(bucket, home), killing) == {}
    assert below_root(home) != before
    assert run_as_user("archive", request_for(bucket, home))["event"] == "done"
    assert below_root(home) == before


async def test_a_mode_that_was_changed_after_a_killed_job_stays(
    bucket: Bucket, home: Path, directory: Path
) -> None:
    killing = path_with_fake(directory / "fakes", "tar", KILL_JOB)
    assert run_as_user("archive", request_for(bucket, home), killing) == {}
    (home / "setuid").chmod(0o755)
    assert run_as_user("archive", request_for(bucket, home))["event"] == "done"
    assert stat.S_IMODE((home / "setuid").stat().st_mode) == 0o755
    assert stat.S_IMODE((home / "write-only").stat().st_mode) == 0o200


async def test_the_modes_are_put_back_when_an_archive_fails(
    bucket: Bucket, home: Path, directory: Path
) -> None:
    before = below_root(home)
    failing = path_with_fake(directory / "fakes", "tar", "exit 2")
    assert run_as_user("archive", request_for(bucket, home), failing)["event"] == "error"
    assert below_root(home) == before
