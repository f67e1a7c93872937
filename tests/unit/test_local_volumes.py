"""Volumes as directories: crashes, unmounted disks, and homes that are hard to remove."""

import fcntl
import os
import uuid
from pathlib import Path

import pytest

from codehub.adapters.local.locks import try_lock
from codehub.adapters.local.root import SENTINEL, LocalRoot
from codehub.adapters.local.volumes import TRASH_PREFIX, LocalVolumes
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from tests.adversarial.deep_trees import make_deep


@pytest.fixture
def root(tmp_path: Path) -> LocalRoot:
    root = LocalRoot.at(tmp_path)
    root.prepare()
    return root


@pytest.fixture
def volumes(root: LocalRoot) -> LocalVolumes:
    return LocalVolumes(root.path)


@pytest.fixture
def workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


async def test_a_root_that_was_never_prepared_is_unreachable(
    tmp_path: Path, workspace_id: WorkspaceId
) -> None:
    with pytest.raises(Transient) as caught:
        await LocalVolumes(tmp_path).observe(workspace_id)
    assert caught.value.reason is ErrorReason.UNREACHABLE
    assert "mounted" in caught.value.message


async def test_volumes_that_cannot_be_listed_are_unreachable(root: LocalRoot, volumes: LocalVolumes) -> None:
    root.volumes.rmdir()
    with pytest.raises(Transient) as caught:
        await volumes.list_all()
    assert caught.value.reason is ErrorReason.UNREACHABLE


def test_preparing_again_keeps_everything(root: LocalRoot, workspace_id: WorkspaceId) -> None:
    root.volume(workspace_id).mkdir()
    root.prepare()
    assert root.volume(workspace_id).is_dir()
    assert (root.path / SENTINEL).is_file()


async def test_a_volume_is_private(root: LocalRoot, volumes: LocalVolumes, workspace_id: WorkspaceId) -> None:
    await volumes.provision(workspace_id)
    assert root.volume(workspace_id).stat().st_mode & 0o777 == 0o700


async def test_trash_that_a_crash_left_is_not_a_volume_and_is_removed(
    root: LocalRoot, volumes: LocalVolumes, workspace_id: WorkspaceId
) -> None:
    leftover = root.volumes / f"{TRASH_PREFIX}{root.volume(workspace_id).name}-0123"
    (leftover / "deep" / "er").mkdir(parents=True)
    assert await volumes.observe(workspace_id) is VolumeFact.ABSENT
    assert await volumes.list_all() == []
    assert not leftover.exists()


async def test_trash_that_is_being_removed_elsewhere_is_left_alone(
    root: LocalRoot, volumes: LocalVolumes
) -> None:
    trash = root.volumes / f"{TRASH_PREFIX}x"
    trash.mkdir()
    descriptor = os.open(trash, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    await volumes.list_all()
    assert trash.exists()
    os.close(descriptor)
    await volumes.list_all()
    assert not trash.exists()


async def test_a_directory_with_another_name_is_not_a_volume(root: LocalRoot, volumes: LocalVolumes) -> None:
    for name in ("lost+found", "ws-1-home", f"{uuid.uuid4()}", f"ws-{uuid.uuid4()}"):
        (root.volumes / name).mkdir()
    (root.volumes / f"ws-{uuid.uuid4()}-home").touch()
    assert await volumes.list_all() == []


async def test_a_home_full_of_read_only_directories_can_be_removed(
    root: LocalRoot, volumes: LocalVolumes, workspace_id: WorkspaceId
) -> None:
    directory = root.volume(workspace_id) / "module" / "cache"
    directory.mkdir(parents=True)
    (directory / "file").touch()
    (root.volume(workspace_id) / "link").symlink_to(root.path)
    directory.chmod(0o500)
    directory.parent.chmod(0o500)
    await volumes.remove(workspace_id)
    assert list(root.volumes.iterdir()) == []
    assert (root.path / SENTINEL).exists()


async def test_a_volume_that_a_job_uses_is_not_removed(
    root: LocalRoot, volumes: LocalVolumes, workspace_id: WorkspaceId
) -> None:
    await volumes.provision(workspace_id)
    with try_lock(root.locks / f"{workspace_id}.job"), pytest.raises(Transient) as caught:
        await volumes.remove(workspace_id)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert await volumes.observe(workspace_id) is VolumeFact.PRESENT
    await volumes.remove(workspace_id)
    assert list(root.locks.iterdir()) == []


async def test_an_invalid_id_is_refused(volumes: LocalVolumes) -> None:
    with pytest.raises(ValueError, match="not a canonical UUID"):
        await volumes.provision(WorkspaceId("../../etc"))


async def test_a_home_deeper_than_the_stack_is_removed(
    root: LocalRoot, volumes: LocalVolumes, workspace_id: WorkspaceId
) -> None:
    await volumes.provision(workspace_id)
    make_deep(root.volume(workspace_id), "d", 1500)
    await volumes.remove(workspace_id)
    assert await volumes.observe(workspace_id) is VolumeFact.ABSENT
    assert list(root.volumes.iterdir()) == []
