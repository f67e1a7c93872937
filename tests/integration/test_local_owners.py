"""Started by root, each workspace runs as a user of its own, who owns its whole home."""

import io
import os
import stat
import subprocess
import tarfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from codehub.adapters.local.owners import UIDS, Owners
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent
from codehub.domain.naming import archive_key
from codehub.ports import UNRECORDED, InstanceRequest
from storage_job.compression import Decompressor
from testkit.fakes import IMAGE
from testkit.needs import need_bubblewrap, need_root
from tests.buckets import Bucket
from tests.contracts.instance_harness import LocalHarness, ask
from tests.contracts.test_archives import store_of

SOMEBODY = 12345


@pytest.fixture(autouse=True)
def _root() -> None:
    need_root()


@pytest.fixture
def owners(tmp_path: Path) -> Owners:
    root = LocalRoot.at(tmp_path / "root")
    root.prepare()
    return Owners(root, UIDS)


async def new_home(owners: Owners) -> tuple[WorkspaceId, Path]:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await LocalVolumes(owners.root.path).provision(workspace_id)
    return workspace_id, owners.root.volume(workspace_id)


def owner(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_uid, status.st_gid


def run(script: str) -> str:
    return subprocess.run(("/bin/bash", "-c", script), check=True, capture_output=True, text=True).stdout


async def test_no_two_workspaces_share_a_user(owners: Owners) -> None:
    homes = [await new_home(owners) for _ in range(5)]
    uids = {owners.claim(workspace_id) for workspace_id, _ in homes}
    assert len(uids) == len(homes)
    assert uids == {home.stat().st_uid for _, home in homes}
    # The next start finds the same ones.
    assert {owners.claim(workspace_id) for workspace_id, _ in homes} == uids


async def test_a_copied_home_gets_a_user_of_its_own(owners: Owners) -> None:
    (first, one), (second, two) = await new_home(owners), await new_home(owners)
    owners.claim(first)
    (two / "file").touch()
    for path in (two, two / "file"):
        os.chown(path, *owner(one))
    uid = owners.claim(second)
    assert uid != one.stat().st_uid
    assert owner(two / "file") == (uid, uid)


async def test_a_start_is_refused_when_all_users_are_taken(owners: Owners) -> None:
    few = Owners(owners.root, range(UIDS.start, UIDS.start + 1))
    (first, _), (second, _) = await new_home(owners), await new_home(owners)
    few.claim(first)
    with pytest.raises(Permanent, match="CODEHUB_LOCAL_UID_COUNT"):
        few.claim(second)


async def test_all_of_an_older_home_is_given_to_its_workspace_and_nothing_else(
    owners: Owners, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not theirs")
    workspace_id, home = await new_home(owners)
    (home / "plain").write_text("old")
    (home / "directory").mkdir(mode=0o500)
    (home / "link").symlink_to(outside)
    (home / "to-directory").symlink_to(tmp_path)
    os.mkfifo(home / "pipe")
    (home / "twice").write_text("both")
    (home / "directory" / "again").hardlink_to(home / "twice")
    (home / "hard").hardlink_to(outside)
    (home / "special").write_text("")
    (home / "special").chmod(0o6755)
    for path in home.rglob("*"):
        if path.name != "hard":
            os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
    (home / "special").chmod(0o6755)
    uid = owners.claim(workspace_id)
    found = {path.relative_to(home).as_posix() for path in home.rglob("*") if owner(path) == (uid, uid)}
    assert found == {
        *("plain", "directory", "link", "to-directory", "pipe", "twice", "directory/again", "special")
    }
    assert owner(outside) == owner(home / "hard") == (0, 0)
    assert stat.S_IMODE((home / "special").stat().st_mode) == 0o6755
    assert stat.S_IMODE((home / "directory").stat().st_mode) == 0o500


def make_nested_directories(top: Path, count: int) -> None:
    """Create directories in each other whose whole path is too long for a system call."""
    directory = os.open(top, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("nested-directory", dir_fd=directory)
        parent, directory = directory, os.open("nested-directory", os.O_RDONLY, dir_fd=directory)
        os.close(parent)
    os.close(directory)


async def test_a_home_of_any_depth_is_given_away(owners: Owners) -> None:
    workspace_id, home = await new_home(owners)
    make_nested_directories(home, 1500)
    uid = owners.claim(workspace_id)
    assert run(f"find {home} -not -uid {uid}") == ""


@pytest.mark.parametrize("killed_at", [0, 1, 2, 10, 21])
async def test_a_start_killed_halfway_is_finished_by_the_next(
    owners: Owners, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    workspace_id, home = await new_home(owners)
    for number in range(20):
        (home / str(number)).touch()
    with monkeypatch.context() as killing:
        kill_at_chown(killing, killed_at)
        with pytest.raises(Killed):
            owners.claim(workspace_id)
    uid = owners.claim(workspace_id)
    assert {owner(path) for path in (home, *home.iterdir())} == {(uid, uid)}


CAPABILITY = b"\x01\x00\x00\x02\x00\x20" + bytes(14)


@pytest.mark.parametrize("killed_after", ["chown", "chmod", "setxattr", None])
async def test_bits_and_capabilities_that_a_new_owner_clears_are_put_back_even_after_a_kill(
    owners: Owners, monkeypatch: pytest.MonkeyPatch, killed_after: str | None
) -> None:
    workspace_id, home = await new_home(owners)
    program = home / "program"
    program.touch()
    program.chmod(0o4755)
    os.setxattr(program, "security.capability", CAPABILITY)
    if killed_after is not None:
        with monkeypatch.context() as killing:
            kill_after(killing, killed_after)
            with pytest.raises(Killed):
                owners.claim(workspace_id)
    uid = owners.claim(workspace_id)
    assert owner(program) == (uid, uid)
    assert stat.S_IMODE(program.stat().st_mode) == 0o4755
    assert {name: os.getxattr(program, name) for name in os.listxattr(program)} == {
        "security.capability": CAPABILITY
    }


def kill_after(killing: pytest.MonkeyPatch, function: str) -> None:
    """Kill after the first call for the content of a home; the home itself is changed before."""
    real = getattr(os, function)

    def killed(path: object, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        real(path, *arguments, **options)
        if not isinstance(path, Path):
            raise Killed

    killing.setattr(os, function, killed)


class Killed(BaseException):
    """Ends the process, as far as the code under test can tell."""


def kill_at_chown(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    chown, calls = os.chown, iter(range(1000))

    def chown_or_die(*arguments: Any, **options: Any) -> None:  # noqa: ANN401
        if next(calls) == number:
            raise Killed
        chown(*arguments, **options)

    monkeypatch.setattr(os, "chown", chown_or_die)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[LocalHarness]:
    need_bubblewrap()
    harness = LocalHarness(tmp_path, sandboxed=True)
    yield harness
    await harness.clean_up()


async def test_the_ide_runs_as_the_workspace_s_user_and_cannot_become_another(harness: LocalHarness) -> None:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    home = harness.root.volume(workspace_id)
    (home / "old").touch()
    await harness.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    assert await ask(await harness.instances.find_upstream(workspace_id), workspace_id, "health") == "ok"
    uid = home.stat().st_uid
    assert uid in UIDS
    assert owner(home / "old") == (uid, uid)
    for pid in harness.pids(workspace_id):
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(uid)}
        assert status["Groups"].split() in ([], [str(uid)])
        assert status["NoNewPrivs"] == "1" or pid == min(harness.pids(workspace_id))
    inner = max(harness.pids(workspace_id))
    lines = Path(f"/proc/{inner}/status").read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("Cap")] == ["0" * 16] * 5


def decompress(compressed: bytes) -> bytes:
    return b"".join(bytes(piece) for piece in Decompressor(".tar.zst").feed(memoryview(compressed)))


async def test_an_archive_says_the_same_wherever_it_was_made_and_fits_every_user(
    owners: Owners, bucket: Bucket
) -> None:
    (first, home), (second, restored) = await new_home(owners), await new_home(owners)
    (home / "tool").write_text("#!/bin/sh\n")
    uid = owners.claim(first)
    (home / "tool").chmod(0o4755)
    jobs, key = LocalStorageJobs(owners.root.path, store_of(bucket)), archive_key(first, str(uuid.uuid4()))
    await jobs.archive(first, key, lambda _: None)
    with tarfile.open(fileobj=io.BytesIO(decompress(await bucket.read(key)))) as archive:
        assert {(member.uid, member.gid) for member in archive} == {(1000, 1000)}
    await jobs.restore(second, key, lambda _: None, UNRECORDED)
    other = owners.claim(second)
    assert other not in {uid, 1000}
    assert owner(restored / "tool") == owner(restored) == (other, other)
    assert stat.S_IMODE((restored / "tool").stat().st_mode) == 0o4755
