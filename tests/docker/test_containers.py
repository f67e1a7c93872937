"""Containers of workspaces: left alone while they run, made anew where they have changed, one at most."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.options import DockerOptions, Limits
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import container_name, volume_name
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest, Progress
from tests.contracts.instance_harness import DockerBench, ask, opened_docker_bench
from tests.docker.networks import own_network
from tests.docker_engine import build, docker, opened_engine
from tests.fakes import IMAGE, NEVER_READY_IMAGE
from tests.waiting import DEADLINE_SECONDS, until

DEAF_IMAGE = "codehub-test-deaf"
MOVING_IMAGE = "codehub-test-moving"
CALLERS = 50


@pytest.fixture
async def bench() -> AsyncIterator[DockerBench]:
    async with opened_docker_bench() as bench:
        yield bench


@pytest.fixture
async def workspace_id(bench: DockerBench) -> WorkspaceId:
    """A workspace with a volume."""
    workspace_id = new_workspace_id()
    await bench.volumes.provision(workspace_id)
    return workspace_id


def new_workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


def label_image(image: str, label: str, name: str) -> None:
    """Make another image that differs in a label."""
    container = docker("create", image)
    docker("commit", "--change", f"LABEL {label}", container, name)
    docker("rm", container)


def ignore(_: Progress) -> None:
    pass


async def start(
    bench: DockerBench, workspace_id: WorkspaceId, image_ref: str = IMAGE, **changes: object
) -> str:
    """Start it with options that were changed so; its container's id."""
    instances = DockerInstances(bench.engine.client, bench.engine.with_options(**changes))
    await instances.start(InstanceRequest(workspace_id, image_ref), ignore)
    assert await bench.instances.look(workspace_id) is ContainerFact.READY
    return str(bench.engine.inspect(workspace_id)["Id"])


def patient(options: DockerOptions, **changes: Any) -> DockerOptions:  # noqa: ANN401 (whatever there is)
    return replace(options, patience=replace(options.patience, **changes))


async def test_an_exited_container_that_is_right_is_started_again(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    before = await start(bench, workspace_id)
    bench.kill(workspace_id)
    assert await start(bench, workspace_id) == before


async def test_a_created_container_is_started(bench: DockerBench, workspace_id: WorkspaceId) -> None:
    """As a worker leaves it that died between the two."""
    before = await start(bench, workspace_id)
    wanted = bench.engine.inspect(workspace_id)["Config"]["Labels"]
    await bench.instances.stop(workspace_id)
    labels = [f"--label={name}={value}" for name, value in wanted.items()]
    publish = ("--network", bench.engine.options.network, "--publish", "127.0.0.1::8080")
    environment = ("--env", f"CODEHUB_BASE_PATH=/w/{workspace_id}/")
    made = docker("create", "--name", container_name(workspace_id), *labels, *publish, *environment, IMAGE)
    assert await start(bench, workspace_id) == made != before


async def test_a_running_container_is_left_alone_though_limits_and_image_have_changed(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    build(DEAF_IMAGE, "tiny-ide.Dockerfile", "FLAG=deaf")
    before = await start(bench, workspace_id)
    assert await start(bench, workspace_id, limits=Limits(pids=99)) == before
    assert await start(bench, workspace_id, DEAF_IMAGE) == before


async def test_an_exited_container_with_other_limits_is_made_anew(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    before = await start(bench, workspace_id)
    bench.kill(workspace_id)
    after = await start(bench, workspace_id, limits=Limits(pids=99))
    assert after != before
    assert bench.engine.inspect(workspace_id)["HostConfig"]["PidsLimit"] == 99


async def test_an_exited_container_of_another_image_is_made_anew(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    build(DEAF_IMAGE, "tiny-ide.Dockerfile", "FLAG=deaf")
    before = await start(bench, workspace_id)
    bench.kill(workspace_id)
    assert await start(bench, workspace_id, DEAF_IMAGE) != before
    assert bench.engine.inspect(workspace_id)["Config"]["Image"] == DEAF_IMAGE


async def test_an_exited_container_is_made_anew_when_its_image_s_name_has_moved_on(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    docker("tag", IMAGE, MOVING_IMAGE)
    before = await start(bench, workspace_id, MOVING_IMAGE)
    assert await start(bench, workspace_id, MOVING_IMAGE) == before
    label_image(IMAGE, "release=2", MOVING_IMAGE)
    bench.kill(workspace_id)
    assert await start(bench, workspace_id, MOVING_IMAGE) != before


async def test_a_container_that_we_did_not_make_is_made_anew_though_it_runs(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    name = container_name(workspace_id)
    labels = [f"--label={name}={value}" for name, value in bench.engine.options.labels(workspace_id).items()]
    somebody_s = docker("run", "--detach", "--name", name, *labels, "--volume", "/tmp:/host", IMAGE)  # noqa: S108
    assert await start(bench, workspace_id) != somebody_s
    [mount] = bench.engine.inspect(workspace_id)["Mounts"]
    assert mount["Name"] == volume_name(workspace_id)


async def test_a_container_whose_network_was_made_anew_is_made_anew(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    """It would stay with the old one, which is not there any more, and could never start again."""
    with own_network(bench.engine) as network:
        before = await start(bench, workspace_id, network=network)
        bench.kill(workspace_id)
        docker("network", "rm", network)
        assert await start(bench, workspace_id, network=network) != before


async def test_an_ide_that_ignores_the_request_to_end_is_killed(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    build(DEAF_IMAGE, "tiny-ide.Dockerfile", "FLAG=deaf")
    await start(bench, workspace_id, DEAF_IMAGE)
    hasty = DockerInstances(bench.engine.client, patient(bench.engine.options, stop=1))
    await hasty.stop(workspace_id)
    assert bench.engine.containers("--all") == []


async def test_an_ide_is_asked_to_end_before_it_is_killed(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    await start(bench, workspace_id)
    # If it were killed only, this would be a grace that nobody can wait for.
    polite = DockerInstances(bench.engine.client, patient(bench.engine.options, stop=3600))
    async with asyncio.timeout(DEADLINE_SECONDS):
        await polite.stop(workspace_id)
    assert bench.engine.containers("--all") == []


async def test_a_container_that_runs_without_answering_is_unhealthy(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    starting = asyncio.create_task(start(bench, workspace_id, NEVER_READY_IMAGE))

    async def runs() -> bool:
        return container_name(workspace_id) in bench.engine.containers()

    await until(runs, "it runs")
    assert await bench.instances.look(workspace_id) is ContainerFact.UNHEALTHY
    assert await bench.instances.find_upstream(workspace_id) is None
    starting.cancel()
    await asyncio.wait([starting])


async def test_an_ide_that_is_not_ready_in_time_is_quoted_and_removed(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    hasty = DockerInstances(bench.engine.client, patient(bench.engine.options, start=2))
    with pytest.raises(Transient, match=r"did not become ready.*about to wait forever") as caught:
        await hasty.start(InstanceRequest(workspace_id, NEVER_READY_IMAGE), ignore)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert bench.engine.containers("--all") == []


async def test_what_an_ide_says_is_heard_while_it_runs(bench: DockerBench, workspace_id: WorkspaceId) -> None:
    await start(bench, workspace_id)
    upstream = await bench.instances.find_upstream(workspace_id)
    heard = b""
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for chunk in bench.instances.read_log(workspace_id, tail=10, follow=True):
            heard += chunk
            if heard == b"listening\n":
                await ask(upstream, workspace_id, "say/hello")
            if heard.endswith(b"hello\n"):
                bench.kill(workspace_id)
    assert heard == b"listening\nhello\n"


async def test_what_belongs_to_another_installation_is_not_listed(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    await start(bench, workspace_id)
    async with opened_engine() as other:
        neighbour = DockerBench(other, bench.dead)
        foreign = new_workspace_id()
        await neighbour.volumes.provision(foreign)
        await start(neighbour, foreign)
        assert await bench.instances.list_all() == {workspace_id: ContainerFact.READY}
        assert await bench.volumes.list_all() == [workspace_id]
        assert await neighbour.instances.list_all() == {foreign: ContainerFact.READY}
        assert await neighbour.volumes.list_all() == [foreign]


async def test_many_starts_and_stops_at_once_leave_one_container_at_most(
    bench: DockerBench, workspace_id: WorkspaceId
) -> None:
    request = InstanceRequest(workspace_id, IMAGE)
    starts = [bench.instances.start(request, ignore) for _ in range(CALLERS)]
    stops = [bench.instances.stop(workspace_id) for _ in range(CALLERS)]
    racing = [each for pair in zip(starts, stops, strict=True) for each in pair]
    outcomes = await asyncio.gather(*racing, return_exceptions=True)
    assert {type(each) for each in outcomes} <= {type(None), Transient}
    assert bench.engine.containers("--all") in ([], [container_name(workspace_id)])
    await bench.instances.start(request, ignore)
    assert bench.engine.containers("--all") == [container_name(workspace_id)]
    await bench.instances.stop(workspace_id)
    assert bench.engine.containers("--all") == []
