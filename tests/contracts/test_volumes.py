"""What every provider of volumes promises."""

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
from tests.contracts import instance_harness
from tests.contracts.instance_harness import InstanceBench, opened_docker_bench
from tests.fakes import IMAGE


class VolumeBench(InstanceBench, Protocol):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None: ...

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]: ...


class FakeBench(instance_harness.FakeBench):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None:
        self.world.volumes[workspace_id][name] = content

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]:
        return self.world.volumes[workspace_id]


class LocalBench(instance_harness.LocalBench):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None:
        (self.root.volume(workspace_id) / name).write_bytes(content)

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.root.volume(workspace_id).iterdir()}


class DockerBench(instance_harness.DockerBench):
    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None:
        (self.engine.home(workspace_id) / name).write_bytes(content)

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.engine.home(workspace_id).iterdir()}


@pytest.fixture(params=["fake", "local", "docker"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VolumeBench]:
    if request.param == "fake":
        yield FakeBench()
        return
    if request.param == "docker":
        async with opened_docker_bench() as docker_bench:
            yield DockerBench(docker_bench.engine, docker_bench.dead)
        return
    local = LocalBench(tmp_path, sandboxed=False)
    yield local
    await local.tidy()


@pytest.fixture
def workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


async def test_what_was_never_provisioned_is_absent(bench: VolumeBench, workspace_id: WorkspaceId) -> None:
    assert await bench.volumes.look(workspace_id) is VolumeFact.ABSENT
    assert await bench.volumes.list_all() == []


async def test_a_provisioned_volume_is_there_and_empty(bench: VolumeBench, workspace_id: WorkspaceId) -> None:
    await bench.volumes.provision(workspace_id)
    assert await bench.volumes.look(workspace_id) is VolumeFact.PRESENT
    assert await bench.volumes.list_all() == [workspace_id]
    assert bench.read(workspace_id) == {}


async def test_provisioning_again_keeps_the_content(bench: VolumeBench, workspace_id: WorkspaceId) -> None:
    await bench.volumes.provision(workspace_id)
    bench.write(workspace_id, "thesis", b"three years of work")
    await asyncio.gather(bench.volumes.provision(workspace_id), bench.volumes.provision(workspace_id))
    assert bench.read(workspace_id) == {"thesis": b"three years of work"}


async def test_a_removed_volume_is_gone_with_its_content(
    bench: VolumeBench, workspace_id: WorkspaceId
) -> None:
    await bench.volumes.provision(workspace_id)
    bench.write(workspace_id, "old", b"old")
    await bench.volumes.remove(workspace_id)
    assert await bench.volumes.look(workspace_id) is VolumeFact.ABSENT
    assert await bench.volumes.list_all() == []
    await bench.volumes.provision(workspace_id)
    assert bench.read(workspace_id) == {}


async def test_removing_what_is_not_there_succeeds(bench: VolumeBench, workspace_id: WorkspaceId) -> None:
    await bench.volumes.remove(workspace_id)
    await bench.volumes.provision(workspace_id)
    await bench.volumes.remove(workspace_id)
    await bench.volumes.remove(workspace_id)
    assert await bench.volumes.look(workspace_id) is VolumeFact.ABSENT


async def test_removing_one_volume_keeps_the_others(bench: VolumeBench, workspace_id: WorkspaceId) -> None:
    other = WorkspaceId(str(uuid.uuid4()))
    await bench.volumes.provision(workspace_id)
    await bench.volumes.provision(other)
    await bench.volumes.remove(workspace_id)
    assert await bench.volumes.list_all() == [other]


async def test_a_volume_in_use_is_not_removed(bench: VolumeBench, workspace_id: WorkspaceId) -> None:
    await bench.volumes.provision(workspace_id)
    bench.write(workspace_id, "open", b"unsaved")
    await bench.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    with pytest.raises(Transient) as caught:
        await bench.volumes.remove(workspace_id)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert bench.read(workspace_id)["open"] == b"unsaved"


async def test_an_exited_instance_still_uses_its_volume(
    bench: VolumeBench, workspace_id: WorkspaceId
) -> None:
    await bench.volumes.provision(workspace_id)
    await bench.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    bench.kill(workspace_id)
    with pytest.raises(Transient):
        await bench.volumes.remove(workspace_id)
    await bench.instances.stop(workspace_id)
    await bench.volumes.remove(workspace_id)
    assert await bench.volumes.look(workspace_id) is VolumeFact.ABSENT


async def test_silence_is_not_absence(bench: VolumeBench, workspace_id: WorkspaceId) -> None:
    await bench.volumes.provision(workspace_id)
    bench.go_down()
    calls = (
        bench.volumes.look(workspace_id),
        bench.volumes.list_all(),
        bench.volumes.provision(workspace_id),
        bench.volumes.remove(workspace_id),
    )
    for call in calls:
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE
