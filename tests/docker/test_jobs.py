"""Storage jobs as containers: all attributes are restored, no secret shows, and no container is left."""

import asyncio
import ipaddress
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from codehub.adapters.docker.jobs.container import job_configuration
from codehub.adapters.docker.jobs.storage_jobs import DockerStorageJobs
from codehub.adapters.docker.options import DockerOptions
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import archive_key, job_name, meta_key, volume_name
from codehub.domain.states import ErrorReason
from codehub.ports import UNRECORDED, ArchiveStore, Progress
from testkit.docker_engine import JOB_IMAGE, NO_SOCKETS, STALLED_JOB_IMAGE, URL, docker, opened_engine
from testkit.trees import describe_tree, make_rich_home
from testkit.waiting import until
from tests.buckets import Bucket
from tests.contracts.job_harness import DockerHarness
from tests.contracts.test_archives import store_of
from tests.contracts.test_storage_jobs import RunningJob
from tests.docker.networks import own_network
from tests.forwarded_stores import store_at

REPOSITORY = Path(__file__).parents[2]
CALLER = """
import asyncio, json, sys
from codehub.adapters.docker.engine import open_engine
from codehub.adapters.docker.jobs.storage_jobs import DockerStorageJobs
from codehub.adapters.docker.options import DockerOptions
from codehub.ports import UNRECORDED, ArchiveStore
from testkit.docker_engine import NO_SOCKETS

url, project, image, store, workspace_id, key = sys.argv[1:]

async def main():
    async with open_engine(url) as engine:
        options = DockerOptions(NO_SOCKETS, project=project, job_image=image)
        jobs = DockerStorageJobs(engine, options, ArchiveStore(**json.loads(store)))
        await jobs.archive(workspace_id, key, lambda _: print("begun", flush=True))

asyncio.run(main())
"""


@pytest.fixture
async def harness(bucket: Bucket) -> AsyncIterator[DockerHarness]:
    async with opened_engine() as engine:
        yield DockerHarness(engine, bucket)


@pytest.fixture
def workspace_id(harness: DockerHarness) -> WorkspaceId:
    """Create a workspace with a home."""
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    harness.write_home(workspace_id, {"thesis": b"three years of work"})
    return workspace_id


@pytest.fixture
def key(workspace_id: WorkspaceId) -> str:
    return archive_key(workspace_id, str(uuid.uuid4()))


def ignore(_: Progress) -> None:
    pass


def jobs_of(harness: DockerHarness, store: ArchiveStore, **changes: object) -> DockerStorageJobs:
    return DockerStorageJobs(harness.engine.client, harness.engine.with_options(**changes), store)


def inspect_job(workspace_id: WorkspaceId) -> dict[str, Any]:
    [found] = json.loads(docker("inspect", job_name(workspace_id)))
    return dict(found)


async def test_a_home_is_restored_with_all_attributes(
    harness: DockerHarness, workspace_id: WorkspaceId, key: str
) -> None:
    home = harness.engine.home(workspace_id)
    make_rich_home(home)
    before = describe_tree(home)
    await harness.jobs.archive(workspace_id, key, ignore)
    volumes = DockerVolumes(harness.engine.client, harness.engine.options)
    await volumes.remove(workspace_id)
    assert not home.exists()
    await harness.jobs.restore(workspace_id, key, ignore, UNRECORDED)
    assert describe_tree(home) == before
    assert await volumes.observe(workspace_id) is VolumeFact.PRESENT


async def test_credentials_appear_nowhere(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        container = inspect_job(workspace_id)
        shown = [json.dumps(container), docker("logs", job_name(workspace_id))]
        shown += [file.read_text(errors="replace") for file in kept_of(container)]
        shown += [word for process in processes_of(workspace_id) for word in visible_of(process)]
        await job.cancel()
    assert any("--attended" in each for each in shown)
    assert any("PATH=" in each for each in shown)
    for secret in (bucket.server.access_key, bucket.server.secret_key):
        assert not [each for each in shown if secret in each]


def kept_of(container: dict[str, Any]) -> list[Path]:
    """Return what the engine stores about the container."""
    files = [each for each in Path(container["HostsPath"]).parent.rglob("*") if each.is_file()]
    assert "config.v2.json" in [each.name for each in files]
    return files


def processes_of(workspace_id: WorkspaceId) -> list[psutil.Process]:
    lines = docker("top", job_name(workspace_id), "-eo", "pid").splitlines()[1:]
    assert len(lines) > 1
    return [psutil.Process(int(line)) for line in lines]


def visible_of(process: psutil.Process) -> list[str]:
    return [*process.cmdline(), *(f"{name}={value}" for name, value in process.environ().items())]


async def test_an_archive_job_can_only_read(
    harness: DockerHarness, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        container = inspect_job(workspace_id)
        await job.cancel()
    check_confined(container, {"CAP_DAC_READ_SEARCH"})
    # The default is 1024.
    assert container["HostConfig"]["CpuShares"] == 341
    [mount] = container["Mounts"]
    assert (mount["Name"], mount["Destination"], mount["RW"]) == (volume_name(workspace_id), "/data", False)


async def test_a_restore_job_can_only_write_a_home(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    await harness.jobs.archive(workspace_id, key, ignore)
    stalled = jobs_of(harness, store_of(bucket), job_image=STALLED_JOB_IMAGE)
    restoring = asyncio.create_task(stalled.restore(workspace_id, key, ignore, UNRECORDED))
    await until_job_runs(harness, workspace_id)
    container = inspect_job(workspace_id)
    restoring.cancel()
    await asyncio.wait([restoring])
    check_confined(container, {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETFCAP"})
    assert container["HostConfig"]["CpuShares"] == 0
    [mount] = container["Mounts"]
    assert (mount["Name"], mount["Destination"], mount["RW"]) == (volume_name(workspace_id), "/data", True)


def check_confined(container: dict[str, Any], capabilities: set[str]) -> None:
    host = container["HostConfig"]
    assert {f"CAP_{each.removeprefix('CAP_')}" for each in host["CapAdd"]} == capabilities
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["ReadonlyRootfs"]
    assert host["Memory"] == host["MemorySwap"] == 512 * 1024 * 1024
    assert host["PidsLimit"] == 128
    assert not host["Privileged"]


def test_an_empty_archive_needs_no_home_and_no_capabilities() -> None:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    store = ArchiveStore("bucket", "id", "secret")
    host = job_configuration("create-empty", workspace_id, store, DockerOptions(NO_SOCKETS))["HostConfig"]
    assert (host["Mounts"], host["CapAdd"], host["CapDrop"]) == ([], [], ["ALL"])


async def until_job_runs(harness: DockerHarness, workspace_id: WorkspaceId) -> None:
    async def runs() -> bool:
        return job_name(workspace_id) in harness.engine.containers()

    await until(runs, "the job runs")


async def test_a_job_whose_caller_was_killed_ends_and_another_can_start(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    store = store_of(bucket)
    told = json.dumps({name: getattr(store, name) for name in store.__dataclass_fields__})
    arguments = (URL, harness.engine.options.project, STALLED_JOB_IMAGE, told, workspace_id, key)
    caller = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CALLER, *arguments), stdout=asyncio.subprocess.PIPE, cwd=REPOSITORY
    )
    assert caller.stdout is not None
    assert await caller.stdout.readline() == b"begun\n"
    assert harness.count() == 1
    caller.kill()
    await caller.wait()

    async def ended() -> bool:
        return harness.count() == 0

    await until(ended, "the job ends by itself")
    assert await bucket.unfinished_uploads() == []
    await harness.jobs.archive(workspace_id, key, ignore)
    assert meta_key(key) in await bucket.keys()
    assert harness.engine.containers("--all") == []


async def test_an_ended_job_does_not_block_removal_of_the_volume(
    harness: DockerHarness, workspace_id: WorkspaceId
) -> None:
    labels = [
        f"--label={name}={value}" for name, value in harness.engine.options.labels(workspace_id).items()
    ]
    volume = f"--volume={volume_name(workspace_id)}:/data"
    leftover = ("--name", job_name(workspace_id), *labels, volume, "--entrypoint=true", JOB_IMAGE)
    docker("run", *leftover)
    assert harness.engine.containers("--all") == [job_name(workspace_id)]
    await DockerVolumes(harness.engine.client, harness.engine.options).remove(workspace_id)
    assert (harness.engine.containers("--all"), harness.engine.volumes()) == ([], [])


async def test_a_running_job_blocks_removal_of_the_volume(
    harness: DockerHarness, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        with pytest.raises(Transient, match="a container uses it"):
            await DockerVolumes(harness.engine.client, harness.engine.options).remove(workspace_id)
        assert harness.count() == 1
        await job.cancel()


async def test_a_killed_job_is_a_failed_action(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        docker("kill", job_name(workspace_id))
        with pytest.raises(Transient, match="status 137") as caught:
            await job.task
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.engine.containers("--all") == []
    assert await bucket.keys() == []


async def test_a_home_that_disappears_before_its_job_is_not_replaced(
    harness: DockerHarness, workspace_id: WorkspaceId, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = harness.engine.client.containers.create

    async def create_too_late(*arguments: Any, **options: Any) -> object:  # noqa: ANN401 (whatever it takes)
        docker("volume", "rm", volume_name(workspace_id))
        return await create(*arguments, **options)

    monkeypatch.setattr(harness.engine.client.containers, "create", create_too_late)
    with pytest.raises(Transient, match="volume of this workspace does not exist") as caught:
        await harness.jobs.archive(workspace_id, key, ignore)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.engine.containers("--all") == []
    assert volume_name(workspace_id) not in docker("volume", "ls", "--quiet").split()


async def test_a_store_on_loopback_is_reached_through_the_host_network(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    assert "//127.0.0.1:" in bucket.server.endpoint_url
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        assert inspect_job(workspace_id)["HostConfig"]["NetworkMode"] == "host"
        await job.cancel()
    await harness.jobs.archive(workspace_id, key, ignore)
    assert meta_key(key) in await bucket.keys()


async def test_a_store_elsewhere_is_reached_through_the_configured_network(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    with own_network(harness.engine) as name:
        docker("network", "create", name)
        await check_that_jobs_use(name, harness, bucket, workspace_id, key, job_network=name)


async def test_a_store_elsewhere_is_reached_through_the_default_network(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    await check_that_jobs_use("bridge", harness, bucket, workspace_id, key, job_network=None)


async def check_that_jobs_use(
    network: str,
    harness: DockerHarness,
    bucket: Bucket,
    workspace_id: WorkspaceId,
    key: str,
    **options: object,
) -> None:
    [found] = json.loads(docker("network", "inspect", network))
    subnet = ipaddress.ip_network(found["IPAM"]["Config"][0]["Subnet"])
    gateway = str(next(subnet.hosts()))
    async with store_at(gateway, bucket) as (store, callers):
        await jobs_of(harness, store, **options).archive(workspace_id, key, ignore)
    assert meta_key(key) in await bucket.keys()
    assert callers
    assert all(ipaddress.ip_address(caller) in subnet for caller in callers)


async def test_the_memory_of_a_job_does_not_grow_with_the_home(
    harness: DockerHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    assert harness.engine.options.job_limits.memory_bytes == 512 * 1024 * 1024
    size = 300_000_000
    (harness.engine.home(workspace_id) / "large").write_bytes(os.urandom(size))
    stored = await harness.jobs.archive(workspace_id, key, ignore)
    assert stored.size_bytes > size
    await harness.jobs.restore(workspace_id, key, ignore, UNRECORDED)
    await bucket.clear()
