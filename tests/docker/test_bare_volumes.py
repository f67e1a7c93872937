"""Docker creates an empty volume for a container whose volume is missing. It never counts as a home."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import volume_name
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest, Progress
from testkit.docker_engine import docker, volume_path
from testkit.fakes import IMAGE
from tests.contracts.instance_harness import DockerHarness, opened_docker_harness


@pytest.fixture
async def harness() -> AsyncIterator[DockerHarness]:
    async with opened_docker_harness() as harness:
        yield harness


@pytest.fixture
def bare() -> Iterator[WorkspaceId]:
    """Create a workspace whose volume Docker created by itself."""
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    docker("volume", "create", volume_name(workspace_id))
    (volume_path(workspace_id) / "file").write_text("somebody's")
    yield workspace_id
    docker("volume", "rm", volume_name(workspace_id))


def exists(workspace_id: WorkspaceId) -> bool:
    return volume_name(workspace_id) in docker("volume", "ls", "--quiet").split()


async def test_it_is_not_observed(harness: DockerHarness, bare: WorkspaceId) -> None:
    assert await harness.volumes.observe(bare) is VolumeFact.ABSENT
    assert await harness.volumes.list_all() == []


async def test_nothing_starts_on_it(harness: DockerHarness, bare: WorkspaceId) -> None:
    with pytest.raises(Transient, match="volume of this workspace does not exist") as caught:
        await harness.instances.start(InstanceRequest(bare, IMAGE), lambda _: None)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.engine.containers("--all") == []


async def test_provisioning_refuses_it_and_keeps_what_it_holds(
    harness: DockerHarness, bare: WorkspaceId
) -> None:
    with pytest.raises(Transient, match="CodeHub did not create the volume") as caught:
        await harness.volumes.provision(bare)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert (volume_path(bare) / "file").read_text() == "somebody's"


async def test_an_empty_one_that_an_engine_left_when_it_went_down_is_recreated(
    harness: DockerHarness, bare: WorkspaceId
) -> None:
    (volume_path(bare) / "file").unlink()
    await harness.volumes.provision(bare)
    assert await harness.volumes.observe(bare) is VolumeFact.PRESENT


async def test_a_home_that_disappears_during_a_start_is_not_replaced(harness: DockerHarness) -> None:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)

    def remove_volume(progress: Progress) -> None:
        # Reported after the volume was checked, and before the container exists.
        if progress.step == "launch":
            docker("volume", "rm", volume_name(workspace_id))

    with pytest.raises(Transient, match="volume of this workspace does not exist"):
        await harness.instances.start(InstanceRequest(workspace_id, IMAGE), remove_volume)
    assert harness.engine.containers("--all") == []
    assert not exists(workspace_id)
