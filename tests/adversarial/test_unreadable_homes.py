"""Files that nobody but root can read: root archives them, and other users get their names."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage_job.errors import EXIT_CODES, Reason
from testkit.needs import need_root
from testkit.trees import describe_tree
from tests.adversarial.outcomes import assert_nothing_uploaded, assert_round_trip
from tests.buckets import Bucket
from tests.storage_jobs import REPOSITORY, archive, request_for

# Without these capabilities, file permissions also apply to root.
_UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "readable").mkdir(parents=True)
    (tmp_path / "home" / "readable" / "file").write_text("file")
    return tmp_path / "home"


def run_unprivileged(operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    run = subprocess.run(
        ("/usr/bin/env", *_UNPRIVILEGED, sys.executable, "-m", "storage_job", operation),
        input=json.dumps(request).encode(),
        capture_output=True,
        cwd=REPOSITORY,
        check=False,
    )
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["file", "directory"])
async def test_an_unreadable_entry_of_somebody_else_is_named_and_nothing_is_archived(
    bucket: Bucket, home: Path, kind: str
) -> None:
    need_root()
    unreadable = home / "unreadable"
    unreadable.write_text("secret") if kind == "file" else unreadable.mkdir()
    unreadable.chmod(0)
    os.chown(unreadable, 1000, 1000)
    code, last = run_unprivileged("archive", request_for(bucket, home))
    assert (code, last["reason"]) == (EXIT_CODES[Reason.ACTION_FAILED], Reason.ACTION_FAILED)
    assert "./unreadable" in last["message"]
    await assert_nothing_uploaded(bucket)


async def test_root_archives_unreadable_files(bucket: Bucket, home: Path, volume: Path) -> None:
    need_root()
    (home / "nothing").write_text("secret")
    (home / "readable" / "file").chmod(0)
    (home / "nothing").chmod(0)
    (home / "readable").chmod(0)
    await assert_round_trip(bucket, home, volume)


async def test_an_unprivileged_user_restores_over_unreadable_directories(bucket: Bucket, home: Path) -> None:
    await archive(bucket, home)
    before = describe_tree(home)
    locked = home / "locked" / "inner"
    locked.mkdir(parents=True)
    (locked / "file").write_text("old")
    for directory in (locked, locked.parent):
        directory.chmod(0)
    code, _ = run_unprivileged("restore", request_for(bucket, home))
    assert code == 0
    assert describe_tree(home) == before
