"""With another engine, or a wiped one, nothing is judged or lost."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codehub.adapters.docker.engine import open_engine
from codehub.adapters.docker.home_store import DockerHomeStore
from codehub.adapters.docker.options import STORE_LABEL, DockerOptions
from codehub.domain.failures import Transient
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.providers import docker_options_of
from testkit.deployment import Deployment, Servers
from testkit.docker_engine import NO_SOCKETS, URL, docker, opened_engine
from tests.chaos.home_stores import look_again, refused
from tests.docker.harness import open_docker_deployment
from tests.stand_in_engine import StandInEngine, stand_in_engine


@pytest.fixture
async def deployment(servers: Servers, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with open_docker_deployment(servers, tmp_path / "data") as deployment:
        yield deployment


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[StandInEngine]:
    async with stand_in_engine(tmp_path / "docker.sock") as running:
        yield running


def marker_of(deployment: Deployment) -> str:
    return docker_options_of(deployment.settings).marker_name


@pytest.mark.timeout(300)
@pytest.mark.parametrize("module", ["worker", "api", "proxy"])
async def test_a_process_on_another_engine_exits_with_an_explanation(
    deployment: Deployment, other: StandInEngine, module: str
) -> None:
    sentence = await refused(deployment, module, CODEHUB_DOCKER_URL=other.url)
    assert f"{other.url} " in sentence
    assert "is empty or not mounted" in sentence
    other.volumes[marker_of(deployment)] = {STORE_LABEL: "of another database"}
    assert "is a different store" in await refused(deployment, module, CODEHUB_DOCKER_URL=other.url)


@pytest.mark.timeout(300)
async def test_a_marker_that_was_copied_to_another_engine_is_not_enough(
    deployment: Deployment, other: StandInEngine
) -> None:
    label = docker(
        "volume", "inspect", "--format", f'{{{{index .Labels "{STORE_LABEL}"}}}}', marker_of(deployment)
    )
    other.volumes[marker_of(deployment)] = {STORE_LABEL: label}
    assert "is a different store" in await refused(deployment, "worker", CODEHUB_DOCKER_URL=other.url)


@pytest.mark.timeout(300)
async def test_another_project_on_the_same_engine_is_another_store(deployment: Deployment) -> None:
    assert "is empty or not mounted" in await refused(deployment, "worker", CODEHUB_DOCKER_PROJECT="another")


@pytest.mark.timeout(600)
async def test_an_engine_that_was_wiped_while_a_worker_runs_is_not_judged(deployment: Deployment) -> None:
    async with deployment.worker():
        workspace_id = await deployment.create(DesiredState.STANDBY)
        await deployment.wake(workspace_id)
        await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
        docker("volume", "rm", f"ws-{workspace_id}-home", marker_of(deployment))
        await deployment.want(workspace_id, DesiredState.RUNNING)
        for _ in range(3):
            seen = await look_again(deployment, workspace_id)
            assert (seen.phase, seen.operation) == (Phase.STANDBY, Operation.NONE)
            assert seen.error_reason is None
    assert "is empty or not mounted" in await refused(deployment, "worker")
    assert docker("volume", "ls", "--quiet", "--filter", f"name={workspace_id}") == ""


async def test_a_marker_without_its_label_is_recreated() -> None:
    async with opened_engine() as engine:
        store = DockerHomeStore(engine.client, engine.options, URL)
        docker("volume", "create", engine.options.marker_name)
        assert await store.read_identity() is None
        identity = await store.create_identity()
        assert await store.read_identity() == identity


async def test_the_id_of_the_engine_is_read_again_after_an_outage(
    other: StandInEngine,
) -> None:
    async with open_engine(other.url) as engine:
        store = DockerHomeStore(engine, DockerOptions(NO_SOCKETS), other.url)
        identity = await store.create_identity()
        other.engine_id = "another engine"
        # Cached, because it cannot change while the engine runs.
        assert await store.read_identity() == identity
        other.is_shutting_down = True
        with pytest.raises(Transient):
            await store.read_identity()
        other.is_shutting_down = False
        assert await store.read_identity() != identity
