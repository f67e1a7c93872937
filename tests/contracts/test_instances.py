"""The contract of `Instances`, for every provider."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.instance_ports import RESERVED_PORTS
from codehub.ports import ImageMissing, InstanceRequest, PortUnavailable, Progress
from testkit.fakes import IMAGE, NEVER_READY_IMAGE
from testkit.needs import need_bubblewrap
from testkit.processes import free_port
from testkit.waiting import DEADLINE_SECONDS
from tests.contracts.instance_harness import (
    FakeHarness,
    InstanceHarness,
    LocalHarness,
    eventually,
    exchange,
    no_gateway,
    opened_docker_harness,
)

# The image_ref of a workspace that names no image; it can mean another image later.
DEFAULT = "default"


@pytest.fixture(params=["fake", "plain", "sandboxed", "docker-gateway", "docker-direct", "docker-published"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[InstanceHarness]:
    if request.param == "fake":
        fake = FakeHarness()
        yield fake
        fake.close()
        return
    if request.param.startswith("docker"):
        egress = no_gateway(tmp_path) if request.param == "docker-gateway" else None
        published = request.param == "docker-published"
        async with opened_docker_harness(egress=egress, publish_ports=published) as docker_harness:
            yield docker_harness
        return
    if request.param == "sandboxed":
        need_bubblewrap()
    local = LocalHarness(tmp_path, sandboxed=request.param == "sandboxed")
    yield local
    await local.clean_up()


@pytest.fixture
async def workspace_id(harness: InstanceHarness) -> WorkspaceId:
    """Create a workspace with a volume."""
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    return workspace_id


async def start(
    harness: InstanceHarness, workspace_id: WorkspaceId, image_ref: str = IMAGE
) -> list[Progress]:
    """Start as the workflow does: pull a missing image first."""
    reports: list[Progress] = []
    request = InstanceRequest(workspace_id, image_ref)
    try:
        await harness.instances.start(request, reports.append)
    except ImageMissing:
        await harness.instances.pull(image_ref, reports.append)
        await harness.instances.start(request, reports.append)
    return reports


async def test_an_instance_that_was_never_started_is_absent(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT
    assert await harness.instances.list_all() == {}
    assert await harness.instances.find_upstream(workspace_id) is None


async def test_an_instance_takes_traffic_when_start_returns(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    reports = await start(harness, workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY
    assert await harness.instances.list_all() == {workspace_id: ContainerFact.READY}
    assert await harness.instances.find_upstream(workspace_id) is not None
    assert reports


async def test_starting_a_running_instance_leaves_it_alone(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    before = await harness.instances.find_upstream(workspace_id)
    await start(harness, workspace_id)
    assert await harness.instances.find_upstream(workspace_id) == before
    assert harness.count(workspace_id) == 1


async def test_two_starts_at_once_make_one_instance(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await asyncio.gather(start(harness, workspace_id), start(harness, workspace_id))
    assert harness.count(workspace_id) == 1
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY


async def test_instances_of_two_workspaces_are_separate(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    other = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(other)
    await asyncio.gather(start(harness, workspace_id), start(harness, other))
    await harness.instances.stop(workspace_id)
    assert await harness.instances.list_all() == {other: ContainerFact.READY}


async def test_an_exited_instance_exists_but_takes_no_traffic(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    harness.kill(workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.NOT_READY
    assert await harness.instances.list_all() == {workspace_id: ContainerFact.NOT_READY}
    assert await harness.instances.find_upstream(workspace_id) is None


async def test_an_exited_instance_is_replaced_by_start(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    harness.kill(workspace_id)
    await start(harness, workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY
    assert harness.count(workspace_id) == 1


async def test_an_instance_that_runs_without_responding_is_unhealthy_until_it_responds_again(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    harness.hang(workspace_id)
    with_short_timeouts = harness.with_short_timeouts()
    assert await with_short_timeouts.observe(workspace_id) is ContainerFact.UNHEALTHY
    assert await with_short_timeouts.list_all() == {workspace_id: ContainerFact.UNHEALTHY}
    assert await with_short_timeouts.find_upstream(workspace_id) is None
    harness.resume(workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY


async def test_starting_an_instance_that_does_not_respond_waits_for_it(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id, DEFAULT)
    before = await harness.instances.find_upstream(workspace_id)
    harness.hang(workspace_id)
    harness.reconfigure()
    reports: list[Progress] = []
    request = InstanceRequest(workspace_id, DEFAULT)
    starting = asyncio.create_task(harness.instances.start(request, reports.append))
    await eventually(lambda: bool(reports))
    harness.resume(workspace_id)
    await starting
    assert await harness.instances.find_upstream(workspace_id) == before
    assert harness.count(workspace_id) == 1


async def test_start_ends_an_instance_that_never_responds_and_the_next_start_replaces_it(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    harness.hang(workspace_id)
    with pytest.raises(Transient) as caught:
        await harness.with_short_timeouts().start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT
    await start(harness, workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY


async def test_an_instance_that_does_not_respond_can_be_stopped(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    harness.hang(workspace_id)
    await harness.with_short_timeouts().stop(workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT
    assert harness.count(workspace_id) == 0


async def test_a_changed_configuration_is_reported_and_left_to_the_next_start(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id, DEFAULT)
    before = await harness.instances.find_upstream(workspace_id)
    assert await harness.instances.find_outdated() == {}
    harness.reconfigure()
    await start(harness, workspace_id, DEFAULT)
    assert await harness.instances.find_upstream(workspace_id) == before
    outdated = await harness.instances.find_outdated()
    assert outdated == await harness.instances.find_outdated(workspace_id)
    assert outdated[workspace_id]
    await harness.instances.stop(workspace_id)
    assert await harness.instances.find_outdated(workspace_id) == {}
    await start(harness, workspace_id, DEFAULT)
    assert await harness.instances.find_outdated() == {}


async def test_an_exited_instance_is_replaced_by_one_with_the_current_configuration(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id, DEFAULT)
    harness.reconfigure()
    harness.kill(workspace_id)
    assert await harness.instances.find_outdated() == {}
    await start(harness, workspace_id, DEFAULT)
    assert await harness.instances.find_outdated() == {}


async def test_a_running_instance_is_left_alone_though_its_image_is_no_longer_available(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    before = await harness.instances.find_upstream(workspace_id)
    await start(harness, workspace_id, "no-such-image")
    assert await harness.instances.find_upstream(workspace_id) == before


async def test_an_unknown_image_is_not_available(harness: InstanceHarness, workspace_id: WorkspaceId) -> None:
    with pytest.raises(Permanent) as caught:
        await start(harness, workspace_id, "no-such-image")
    assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
    assert "no-such-image" in caught.value.message
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT


async def test_pulling_an_existing_image_changes_nothing(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await harness.instances.pull(IMAGE, lambda _: None)
    await start(harness, workspace_id)
    await harness.instances.pull(IMAGE, lambda _: None)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY


async def test_nothing_starts_without_a_volume(harness: InstanceHarness) -> None:
    homeless = WorkspaceId(str(uuid.uuid4()))
    with pytest.raises(Transient) as caught:
        await start(harness, homeless)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert await harness.instances.observe(homeless) is ContainerFact.ABSENT


async def test_an_instance_that_ends_before_it_is_ready_is_a_failed_action(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    starting = asyncio.create_task(start(harness, workspace_id, NEVER_READY_IMAGE))
    await eventually(lambda: harness.count(workspace_id) > 0 or starting.done())
    if not starting.done():
        harness.kill(workspace_id)
    with pytest.raises(Transient) as caught:
        await starting
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.count(workspace_id) == 0


async def test_a_stopped_instance_leaves_only_its_volume(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    await harness.instances.stop(workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT
    assert await harness.instances.list_all() == {}
    assert harness.count(workspace_id) == 0
    assert await harness.volumes.list_all() == [workspace_id]


async def test_stopping_a_missing_instance_succeeds(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await harness.instances.stop(workspace_id)
    await start(harness, workspace_id)
    await harness.instances.stop(workspace_id)
    await harness.instances.stop(workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT


async def test_an_exited_instance_can_be_stopped(harness: InstanceHarness, workspace_id: WorkspaceId) -> None:
    await start(harness, workspace_id)
    harness.kill(workspace_id)
    await harness.instances.stop(workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT


async def test_a_stopped_instance_starts_again(harness: InstanceHarness, workspace_id: WorkspaceId) -> None:
    await start(harness, workspace_id)
    await harness.instances.stop(workspace_id)
    await start(harness, workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY


async def test_an_outage_is_not_an_absence(harness: InstanceHarness, workspace_id: WorkspaceId) -> None:
    await start(harness, workspace_id)
    harness.make_unreachable()
    calls = (
        harness.instances.observe(workspace_id),
        harness.instances.list_all(),
        harness.instances.find_outdated(),
        harness.instances.find_outdated(workspace_id),
        harness.instances.find_upstream(workspace_id),
        harness.instances.find_port(workspace_id, 3000),
        harness.instances.list_ports(workspace_id),
        start(harness, workspace_id),
        harness.instances.stop(workspace_id),
    )
    for call in calls:
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_a_program_that_listens_on_loopback_is_listed_and_can_be_reached(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    port = await harness.listen(workspace_id)
    names = {each.port: each.process for each in await harness.instances.list_ports(workspace_id)}
    assert names[port]
    assert await exchange(await harness.instances.find_port(workspace_id, port), b"hello") == b"hello"


async def test_a_port_on_which_nothing_listens_is_not_listed_and_closes_connections(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    unused = free_port()
    assert unused not in {each.port for each in await harness.instances.list_ports(workspace_id)}
    assert await exchange(await harness.instances.find_port(workspace_id, unused), b"hello") == b""


async def test_the_ports_of_an_instance_end_with_it(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    assert await harness.instances.find_port(workspace_id, 3000) is None
    await start(harness, workspace_id)
    port = await harness.listen(workspace_id)
    await harness.instances.stop(workspace_id)
    assert await harness.instances.find_port(workspace_id, port) is None
    assert list(await harness.instances.list_ports(workspace_id)) == []


async def test_ports_of_codehub_itself_cannot_be_opened(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    for port in RESERVED_PORTS:
        with pytest.raises(PortUnavailable, match=str(port)):
            await harness.instances.find_port(workspace_id, port)


async def test_the_log_ends_with_the_last_line(harness: InstanceHarness, workspace_id: WorkspaceId) -> None:
    await start(harness, workspace_id)
    lines = [chunk async for chunk in harness.instances.read_log(workspace_id, tail=1, follow=False)]
    assert b"".join(lines) == b"listening\n"


async def test_a_followed_log_ends_with_its_instance(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    async with asyncio.timeout(DEADLINE_SECONDS), aclosing(follow(harness, workspace_id)) as chunks:
        assert await anext(chunks) == b"listening\n"
        harness.kill(workspace_id)
        assert [chunk async for chunk in chunks] == []


async def follow(harness: InstanceHarness, workspace_id: WorkspaceId) -> AsyncGenerator[bytes]:
    async for chunk in harness.instances.read_log(workspace_id, tail=10, follow=True):
        yield chunk


async def test_without_an_instance_there_is_no_log(
    harness: InstanceHarness, workspace_id: WorkspaceId
) -> None:
    assert [chunk async for chunk in harness.instances.read_log(workspace_id, tail=10, follow=True)] == []
