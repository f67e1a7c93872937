"""Containers of workspaces: kept while they run, recreated after changes, at most one for each."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.options import DockerOptions, Limits
from codehub.adapters.docker.sockets import SOCKETS
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import container_name, volume_name
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest, Progress
from testkit.docker_engine import build, docker, opened_engine
from testkit.fakes import IMAGE, NEVER_READY_IMAGE
from testkit.waiting import DEADLINE_SECONDS, until
from tests.contracts.instance_harness import DockerHarness, ask, opened_docker_harness
from tests.docker.networks import own_network

DEAF_IMAGE = "codehub-test-deaf"
MOVING_IMAGE = "codehub-test-moving"
CALLERS = 50


@pytest.fixture
async def harness() -> AsyncIterator[DockerHarness]:
    async with opened_docker_harness() as harness:
        yield harness


@pytest.fixture
async def workspace_id(harness: DockerHarness) -> WorkspaceId:
    """Create a workspace with a volume."""
    workspace_id = new_workspace_id()
    await harness.volumes.provision(workspace_id)
    return workspace_id


def new_workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


def label_image(image: str, label: str, name: str) -> None:
    """Build another image that differs in a label."""
    container = docker("create", image)
    docker("commit", "--change", f"LABEL {label}", container, name)
    docker("rm", container)


def ignore(_: Progress) -> None:
    pass


async def start(
    harness: DockerHarness, workspace_id: WorkspaceId, image_ref: str = IMAGE, **changes: object
) -> str:
    """Start the workspace with changed options. Return the id of its container."""
    instances = DockerInstances(harness.engine.client, harness.engine.with_options(**changes))
    await instances.start(InstanceRequest(workspace_id, image_ref), ignore)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY
    return str(harness.engine.inspect(workspace_id)["Id"])


def patient(options: DockerOptions, **changes: Any) -> DockerOptions:  # noqa: ANN401 (whatever there is)
    return replace(options, timeouts=replace(options.timeouts, **changes))


async def test_an_exited_container_with_the_right_configuration_is_started_again(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    before = await start(harness, workspace_id)
    harness.kill(workspace_id)
    assert await start(harness, workspace_id) == before


async def test_a_created_container_is_started(harness: DockerHarness, workspace_id: WorkspaceId) -> None:
    """A worker that dies between the two calls leaves one."""
    before = await start(harness, workspace_id)
    wanted = harness.engine.inspect(workspace_id)["Config"]["Labels"]
    await harness.instances.stop(workspace_id)
    labels = [f"--label={name}={value}" for name, value in wanted.items()]
    publish = ("--network", harness.engine.options.network, "--publish", "127.0.0.1::8080")
    environment = ("--env", f"CODEHUB_BASE_PATH=/w/{workspace_id}/")
    made = docker("create", "--name", container_name(workspace_id), *labels, *publish, *environment, IMAGE)
    assert await start(harness, workspace_id) == made != before


async def test_a_running_container_is_left_alone_though_limits_and_image_have_changed(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    build(DEAF_IMAGE, "tiny-ide.Dockerfile", "FLAG=deaf")
    before = await start(harness, workspace_id)
    assert await start(harness, workspace_id, limits=Limits(pids=99)) == before
    assert await start(harness, workspace_id, DEAF_IMAGE) == before


async def test_an_exited_container_with_other_limits_is_recreated(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    before = await start(harness, workspace_id)
    harness.kill(workspace_id)
    after = await start(harness, workspace_id, limits=Limits(pids=99))
    assert after != before
    assert harness.engine.inspect(workspace_id)["HostConfig"]["PidsLimit"] == 99


async def test_an_exited_container_of_another_image_is_recreated(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    build(DEAF_IMAGE, "tiny-ide.Dockerfile", "FLAG=deaf")
    before = await start(harness, workspace_id)
    harness.kill(workspace_id)
    assert await start(harness, workspace_id, DEAF_IMAGE) != before
    assert harness.engine.inspect(workspace_id)["Config"]["Image"] == DEAF_IMAGE


async def test_an_exited_container_is_recreated_when_its_image_name_means_another_image(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    docker("tag", IMAGE, MOVING_IMAGE)
    before = await start(harness, workspace_id, MOVING_IMAGE)
    assert await start(harness, workspace_id, MOVING_IMAGE) == before
    label_image(IMAGE, "release=2", MOVING_IMAGE)
    harness.kill(workspace_id)
    assert await start(harness, workspace_id, MOVING_IMAGE) != before


async def test_a_running_container_that_codehub_did_not_create_is_recreated(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    name = container_name(workspace_id)
    labels = [
        f"--label={name}={value}" for name, value in harness.engine.options.labels(workspace_id).items()
    ]
    somebody_s = docker("run", "--detach", "--name", name, *labels, "--volume", "/tmp:/host", IMAGE)  # noqa: S108
    assert await start(harness, workspace_id) != somebody_s
    mounts = {each["Destination"]: each for each in harness.engine.inspect(workspace_id)["Mounts"]}
    assert mounts.keys() == {"/home/coder", SOCKETS}
    assert mounts["/home/coder"]["Name"] == volume_name(workspace_id)


async def test_a_container_whose_network_was_recreated_is_recreated(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    """It would refer to the old network, which is gone, and could never start again."""
    with own_network(harness.engine) as network:
        before = await start(harness, workspace_id, network=network)
        harness.kill(workspace_id)
        docker("network", "rm", network)
        assert await start(harness, workspace_id, network=network) != before


async def test_an_ide_that_ignores_sigterm_is_killed(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    build(DEAF_IMAGE, "tiny-ide.Dockerfile", "FLAG=deaf")
    await start(harness, workspace_id, DEAF_IMAGE)
    with_short_timeouts = DockerInstances(harness.engine.client, patient(harness.engine.options, stop=1))
    await with_short_timeouts.stop(workspace_id)
    assert harness.engine.containers("--all") == []


async def test_an_ide_is_terminated_before_it_is_killed(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    # If it were only killed, the test would time out in this grace.
    polite = DockerInstances(harness.engine.client, patient(harness.engine.options, stop=3600))
    async with asyncio.timeout(DEADLINE_SECONDS):
        await polite.stop(workspace_id)
    assert harness.engine.containers("--all") == []


async def test_a_container_that_runs_without_responding_is_unhealthy(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    starting = asyncio.create_task(start(harness, workspace_id, NEVER_READY_IMAGE))

    async def runs() -> bool:
        return container_name(workspace_id) in harness.engine.containers()

    await until(runs, "it runs")
    assert await harness.instances.observe(workspace_id) is ContainerFact.UNHEALTHY
    assert await harness.instances.find_upstream(workspace_id) is None
    starting.cancel()
    await asyncio.wait([starting])


async def test_an_ide_that_is_not_ready_in_time_is_quoted_and_removed(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    with_short_timeouts = DockerInstances(harness.engine.client, patient(harness.engine.options, start=10))
    with pytest.raises(Transient, match=r"did not become ready.*about to wait forever") as caught:
        await with_short_timeouts.start(InstanceRequest(workspace_id, NEVER_READY_IMAGE), ignore)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.engine.containers("--all") == []


async def test_the_output_of_an_ide_can_be_followed_while_it_runs(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    upstream = await harness.instances.find_upstream(workspace_id)
    heard = b""
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for chunk in harness.instances.read_log(workspace_id, tail=10, follow=True):
            heard += chunk
            if heard == b"listening\n":
                await ask(upstream, workspace_id, "say/hello")
            if heard.endswith(b"hello\n"):
                harness.kill(workspace_id)
    assert heard == b"listening\nhello\n"


async def test_containers_of_another_installation_are_not_listed(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    async with opened_engine() as other:
        neighbor = DockerHarness(other, harness.dead)
        foreign = new_workspace_id()
        await neighbor.volumes.provision(foreign)
        await start(neighbor, foreign)
        assert await harness.instances.list_all() == {workspace_id: ContainerFact.READY}
        assert await harness.volumes.list_all() == [workspace_id]
        assert await neighbor.instances.list_all() == {foreign: ContainerFact.READY}
        assert await neighbor.volumes.list_all() == [foreign]


async def test_many_concurrent_starts_and_stops_leave_at_most_one_container(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    request = InstanceRequest(workspace_id, IMAGE)
    starts = [harness.instances.start(request, ignore) for _ in range(CALLERS)]
    stops = [harness.instances.stop(workspace_id) for _ in range(CALLERS)]
    racing = [each for pair in zip(starts, stops, strict=True) for each in pair]
    outcomes = await asyncio.gather(*racing, return_exceptions=True)
    assert {type(each) for each in outcomes} <= {type(None), Transient}
    assert harness.engine.containers("--all") in ([], [container_name(workspace_id)])
    await harness.instances.start(request, ignore)
    assert harness.engine.containers("--all") == [container_name(workspace_id)]
    await harness.instances.stop(workspace_id)
    assert harness.engine.containers("--all") == []
