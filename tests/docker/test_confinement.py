"""What a workspace's container can do and use: its configuration, and the view from inside."""

import subprocess
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.options import Limits
from codehub.adapters.docker.sockets import SOCKETS
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from codehub.ports import InstanceRequest
from codehub.providers import docker_options_of
from codehub.settings import load_settings
from testkit.docker_engine import docker
from testkit.fakes import IMAGE
from tests.contracts.instance_harness import DockerHarness, opened_docker_harness
from tests.docker.test_containers import label_image

MIB = 1024 * 1024
KILLED = 137
HOME = "/home/coder"
DEFAULTS = load_settings({"CODEHUB_EGRESS_KEY": "key"})
WRITABLE_IMAGE = "codehub-test-writable"
TAKE_MEMORY = "bytearray({})"
START_THREADS = """
import threading
ended = threading.Event()
count = 0
try:
    while count < 1000:
        threading.Thread(target=ended.wait).start()
        count += 1
except RuntimeError:
    pass
ended.set()
print(count)
"""


@pytest.fixture
async def harness() -> AsyncIterator[DockerHarness]:
    async with opened_docker_harness() as harness:
        yield harness


async def start(
    harness: DockerHarness,
    limits: Limits | None = None,
    image_ref: str = IMAGE,
    *,
    publish_ports: bool = False,
) -> WorkspaceId:
    limits = limits or harness.engine.options.limits
    options = harness.engine.with_options(limits=limits, publish_ports=publish_ports)
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    instances = DockerInstances(harness.engine.client, options)
    await instances.start(InstanceRequest(workspace_id, image_ref), lambda _: None)
    return workspace_id


async def told(
    harness: DockerHarness, limits: Limits | None = None, image_ref: str = IMAGE
) -> dict[str, Any]:
    """Return the configuration of a container that was started with these options."""
    return dict(harness.engine.inspect(await start(harness, limits, image_ref))["HostConfig"])


def inside(workspace_id: WorkspaceId, *command: str) -> subprocess.CompletedProcess[str]:
    arguments = ("docker", "exec", container_name(workspace_id), *command)
    return subprocess.run(arguments, check=False, capture_output=True, text=True)


async def test_it_has_no_privileges_and_cannot_get_any(harness: DockerHarness) -> None:
    workspace_id = await start(harness)
    container = harness.engine.inspect(workspace_id)
    host = container["HostConfig"]
    assert container["Config"]["User"] == "1000:1000"
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert not host["Privileged"]
    assert not host["Devices"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Init"]
    status = inside(workspace_id, "cat", "/proc/self/status").stdout
    lines = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert lines["Uid"] == "1000\t1000\t1000\t1000"
    assert lines["NoNewPrivs"] == "1"
    sets = {int(lines[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert sets == {0}


async def test_a_setuid_program_does_not_make_it_root(harness: DockerHarness) -> None:
    workspace_id = await start(harness)
    program = harness.engine.home(workspace_id) / "whoami"
    docker("cp", f"{container_name(workspace_id)}:/usr/bin/id", str(program))
    program.chmod(0o4755)
    # Outside such a container, this makes it root.
    home = f"{volume_name(workspace_id)}:{HOME}"
    elsewhere = ("--rm", "--user=1000", f"--volume={home}", f"--entrypoint={HOME}/whoami", IMAGE, "-u")
    assert docker("run", *elsewhere) == "0"
    assert inside(workspace_id, f"{HOME}/whoami", "-u").stdout == "1000\n"


async def test_it_writes_where_it_should_and_nowhere_else(harness: DockerHarness) -> None:
    workspace_id = await start(harness)
    assert "Read-only file system" in inside(workspace_id, "touch", "/file").stderr
    assert inside(workspace_id, "touch", f"{HOME}/file").returncode == 0
    run_there = "printf '#!/bin/sh\\necho ran' > /tmp/program && chmod +x /tmp/program && exec /tmp/program"
    assert inside(workspace_id, "sh", "-c", run_there).stdout == "ran\n"


async def test_its_root_is_read_only_if_the_image_allows_it(harness: DockerHarness) -> None:
    # Only the label of an image promises that its IDE works with a read-only root.
    label_image(IMAGE, "codehub.io/read-only-root=false", WRITABLE_IMAGE)
    assert (await told(harness))["ReadonlyRootfs"]
    assert not (await told(harness, image_ref=WRITABLE_IMAGE))["ReadonlyRootfs"]


async def test_it_sees_its_home_and_no_other_data_of_the_machine(harness: DockerHarness) -> None:
    workspace_id = await start(harness)
    container = harness.engine.inspect(workspace_id)
    sockets = harness.options.sockets.directory_of(workspace_id)
    seen = {
        (each["Type"], each.get("Name", each["Source"]), each["Destination"], each["RW"])
        for each in container["Mounts"]
    }
    assert seen == {
        ("volume", volume_name(workspace_id), HOME, True),
        ("bind", str(sockets), SOCKETS, True),
    }
    assert not container["HostConfig"]["Binds"]
    host = container["HostConfig"]
    assert (host["PidMode"], host["IpcMode"], host["UTSMode"]) == ("", "private", "")
    assert inside(workspace_id, "test", "-S", "/var/run/docker.sock").returncode == 1


async def test_it_is_published_on_loopback_only_and_only_on_demand(harness: DockerHarness) -> None:
    workspace_id = await start(harness)
    assert not any(harness.engine.inspect(workspace_id)["NetworkSettings"]["Ports"].values())
    workspace_id = await start(harness, publish_ports=True)
    ports = harness.engine.inspect(workspace_id)["NetworkSettings"]["Ports"]
    assert {binding["HostIp"] for bindings in ports.values() for binding in bindings or ()} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("limits", "memory", "nano_cpus", "pids"),
    [
        (
            docker_options_of(DEFAULTS).limits,
            2048 * MIB,
            2_000_000_000,
            1024,
        ),
        (Limits(memory_bytes=64 * MIB, cpus=0.5, pids=50), 64 * MIB, 500_000_000, 50),
    ],
)
async def test_its_limits_are_those_of_the_settings(
    limits: Limits, memory: int, nano_cpus: int, pids: int, harness: DockerHarness
) -> None:
    host = await told(harness, limits)
    found = (host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"])
    assert found == (memory, memory, nano_cpus, pids)


async def test_a_process_that_exceeds_the_memory_limit_is_killed(harness: DockerHarness) -> None:
    workspace_id = await start(harness, Limits(memory_bytes=64 * MIB))
    assert inside(workspace_id, "python3", "-c", TAKE_MEMORY.format(8 * MIB)).returncode == 0
    assert inside(workspace_id, "python3", "-c", TAKE_MEMORY.format(128 * MIB)).returncode == KILLED


async def test_there_are_no_more_processes_than_the_limit(harness: DockerHarness) -> None:
    workspace_id = await start(harness, Limits(pids=50))
    started = int(inside(workspace_id, "python3", "-c", START_THREADS).stdout)
    assert 0 < started < 50
