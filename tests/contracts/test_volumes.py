"""The contract of `Volumes`, for every provider."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest

from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest
from testkit.fakes import IMAGE
from tests.contracts import instance_harness
from tests.contracts.instance_harness import InstanceHarness, opened_docker_harness


class VolumeHarness(InstanceHarness, Protocol):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None: ...

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]: ...


class FakeHarness(instance_harness.FakeHarness):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None:
        self.world.volumes[workspace_id][name] = content

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]:
        return self.world.volumes[workspace_id]


class LocalHarness(instance_harness.LocalHarness):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None:
        (self.root.volume(workspace_id) / name).write_bytes(content)

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.root.volume(workspace_id).iterdir()}


class DockerHarness(instance_harness.DockerHarness):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None:
        (self.engine.home(workspace_id) / name).write_bytes(content)

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.engine.home(workspace_id).iterdir()}


@pytest.fixture(params=["fake", "local", "docker"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VolumeHarness]:
    if request.param == "fake":
        yield FakeHarness()
        return
    if request.param == "docker":
        async with opened_docker_harness() as docker_harness:
            yield DockerHarness(docker_harness.engine, docker_harness.dead)
        return
    local = LocalHarness(tmp_path, sandboxed=False)
    yield local
    await local.clean_up()


@pytest.fixture
def workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


async def test_a_volume_that_was_never_provisioned_is_absent(
    harness: VolumeHarness, workspace_id: WorkspaceId
) -> None:
    assert await harness.volumes.observe(workspace_id) is VolumeFact.ABSENT
    assert await harness.volumes.list_all() == []


async def test_a_provisioned_volume_exists_and_is_empty(
    harness: VolumeHarness, workspace_id: WorkspaceId
) -> None:
    await harness.volumes.provision(workspace_id)
    assert await harness.volumes.observe(workspace_id) is VolumeFact.PRESENT
    assert await harness.volumes.list_all() == [workspace_id]
    assert harness.read(workspace_id) == {}


async def test_provisioning_again_keeps_the_content(
    harness: VolumeHarness, workspace_id: WorkspaceId
) -> None:
    await harness.volumes.provision(workspace_id)
    harness.write(workspace_id, "thesis", b"three years of work")
    await asyncio.gather(harness.volumes.provision(workspace_id), harness.volumes.provision(workspace_id))
    assert harness.read(workspace_id) == {"thesis": b"three years of work"}


async def test_a_removed_volume_is_gone_with_its_content(
    harness: VolumeHarness, workspace_id: WorkspaceId
) -> None:
    await harness.volumes.provision(workspace_id)
    harness.write(workspace_id, "old", b"old")
    await harness.volumes.remove(workspace_id)
    assert await harness.volumes.observe(workspace_id) is VolumeFact.ABSENT
    assert await harness.volumes.list_all() == []
    await harness.volumes.provision(workspace_id)
    assert harness.read(workspace_id) == {}


async def test_removing_a_missing_volume_succeeds(harness: VolumeHarness, workspace_id: WorkspaceId) -> None:
    await harness.volumes.remove(workspace_id)
    await harness.volumes.provision(workspace_id)
    await harness.volumes.remove(workspace_id)
    await harness.volumes.remove(workspace_id)
    assert await harness.volumes.observe(workspace_id) is VolumeFact.ABSENT


async def test_removing_one_volume_keeps_the_others(
    harness: VolumeHarness, workspace_id: WorkspaceId
) -> None:
    other = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    await harness.volumes.provision(other)
    await harness.volumes.remove(workspace_id)
    assert await harness.volumes.list_all() == [other]


async def test_a_volume_in_use_is_not_removed(harness: VolumeHarness, workspace_id: WorkspaceId) -> None:
    await harness.volumes.provision(workspace_id)
    harness.write(workspace_id, "open", b"unsaved")
    await harness.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    with pytest.raises(Transient) as caught:
        await harness.volumes.remove(workspace_id)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.read(workspace_id)["open"] == b"unsaved"


async def test_an_exited_instance_still_uses_its_volume(
    harness: VolumeHarness, workspace_id: WorkspaceId
) -> None:
    await harness.volumes.provision(workspace_id)
    await harness.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    harness.kill(workspace_id)
    with pytest.raises(Transient):
        await harness.volumes.remove(workspace_id)
    await harness.instances.stop(workspace_id)
    await harness.volumes.remove(workspace_id)
    assert await harness.volumes.observe(workspace_id) is VolumeFact.ABSENT


async def test_a_home_within_reach_is_not_set_aside(
    harness: VolumeHarness, workspace_id: WorkspaceId
) -> None:
    await harness.volumes.set_aside(workspace_id)
    await harness.volumes.provision(workspace_id)
    harness.write(workspace_id, "thesis", b"three years of work")
    with pytest.raises(Transient) as caught:
        await harness.volumes.set_aside(workspace_id)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.read(workspace_id) == {"thesis": b"three years of work"}


async def test_an_outage_is_not_an_absence(harness: VolumeHarness, workspace_id: WorkspaceId) -> None:
    await harness.volumes.provision(workspace_id)
    harness.make_unreachable()
    calls = (
        harness.volumes.observe(workspace_id),
        harness.volumes.list_all(),
        harness.volumes.provision(workspace_id),
        harness.volumes.remove(workspace_id),
        harness.volumes.set_aside(workspace_id),
    )
    for call in calls:
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE
