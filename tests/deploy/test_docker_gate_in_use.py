"""The Docker adapter works on a real engine through the gate."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from uuid import uuid4

import pytest
from aiodocker import DockerError
from aiodocker.volumes import DockerVolume

from codehub.adapters.docker.engine import UNIX_SCHEME, open_engine
from codehub.adapters.docker.home_store import DockerHomeStore
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.options import DockerOptions
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.domain.conditions import ContainerFact, VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import job_name
from testkit.docker_engine import JOB_IMAGE, NO_SOCKETS, URL, docker, need_docker
from tests.deploy.gate import Gate, gate_before


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    need_docker()
    async with gate_before(Path(URL.removeprefix(UNIX_SCHEME))) as gate:
        yield gate


@pytest.fixture
def workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid4()))


@pytest.fixture
def options(workspace_id: WorkspaceId) -> DockerOptions:
    return DockerOptions(NO_SOCKETS, project=f"gate-{workspace_id}")


async def test_readers_see_everything_that_they_need(
    gate: Gate, workspace_id: WorkspaceId, options: DockerOptions
) -> None:
    async with open_engine(f"{UNIX_SCHEME}{gate.read}") as engine:
        instances = DockerInstances(engine, options)
        assert await instances.list_all() == {}
        assert await instances.observe(workspace_id) is ContainerFact.ABSENT
        assert await instances.find_upstream(workspace_id) is None
        assert [line async for line in instances.read_log(workspace_id, tail=1, follow=False)] == []


async def test_readers_cannot_change_anything(
    gate: Gate, workspace_id: WorkspaceId, options: DockerOptions
) -> None:
    async with open_engine(f"{UNIX_SCHEME}{gate.read}") as engine:
        with pytest.raises(Transient, match="refused this call"):
            await DockerVolumes(engine, options).provision(workspace_id)


async def readers_see(gate: Gate, options: DockerOptions, identity: str) -> None:
    async with open_engine(f"{UNIX_SCHEME}{gate.read}") as engine:
        store = DockerHomeStore(engine, options, gate.read.as_uri())
        assert await store.read_identity() == identity


async def test_workers_create_and_remove_homes(
    gate: Gate, workspace_id: WorkspaceId, options: DockerOptions
) -> None:
    async with open_engine(f"{UNIX_SCHEME}{gate.write}") as engine:
        store = DockerHomeStore(engine, options, gate.write.as_uri())
        volumes = DockerVolumes(engine, options)
        identity = await store.create_identity()
        try:
            await readers_see(gate, options, identity)
        finally:
            await DockerVolume(engine, options.marker_name).delete()
        await volumes.provision(workspace_id)
        assert await volumes.list_all() == [workspace_id]
        assert await volumes.observe(workspace_id) is VolumeFact.PRESENT
        await volumes.remove(workspace_id)
        assert await volumes.observe(workspace_id) is VolumeFact.ABSENT


async def test_workers_reach_only_containers_of_codehub_by_their_ids(
    gate: Gate, workspace_id: WorkspaceId
) -> None:
    need_docker(JOB_IMAGE)
    foreign = docker("create", "--name", f"somebody-elses-{workspace_id}", JOB_IMAGE)
    try:
        async with open_engine(f"{UNIX_SCHEME}{gate.write}") as engine:
            own = await engine.containers.create({"Image": JOB_IMAGE}, name=job_name(workspace_id))
            assert (await own.show())["Id"] == own.id
            await own.delete()
            with pytest.raises(DockerError, match="refused this call"):
                await engine.containers.container(foreign).delete(force=True)
            # Absent containers are reported as such.
            with pytest.raises(DockerError) as absent:
                await own.show()
            assert absent.value.status == HTTPStatus.NOT_FOUND
    finally:
        docker("rm", foreign)
