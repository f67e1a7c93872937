"""Storage jobs while servers of the cluster restart, and on a node that is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from uuid import uuid4

import psutil
import pytest

from codehub.adapters.kubernetes.jobs.storage_jobs import KubernetesStorageJobs
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import archive_key, meta_key
from codehub.domain.states import ErrorReason
from codehub.ports import Progress
from testkit.docker_engine import STALLED_JOB_IMAGE
from testkit.kubernetes.cluster import Cluster
from testkit.waiting import until
from tests.buckets import Bucket
from tests.contracts.kubernetes_job_harness import KubernetesJobHarness
from tests.contracts.test_storage_jobs import RunningJob
from tests.kubernetes.conftest import need_cluster
from tests.kubernetes.job_fixtures import harness, shared_namespace

__all__ = ["harness", "shared_namespace"]

NODE = "node1"
# Longer than a restart takes; a kubelet of this age may need the removal by force afterwards.
LONG_LEASE = 40
SHORT_LEASE = 10


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster of its own, because the tests break it."""
    need_cluster()
    cluster = Cluster(tmp_path_factory.mktemp("faults"))
    try:
        cluster.start(nodes=2)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def workspace_id(harness: KubernetesJobHarness) -> WorkspaceId:
    """Create a workspace with a home on the node."""
    workspace_id = WorkspaceId(str(uuid4()))
    harness.create_home(workspace_id, NODE)
    harness.write_home(workspace_id, {"thesis": b"three years of work"})
    return workspace_id


@pytest.fixture
def key(workspace_id: WorkspaceId) -> str:
    return archive_key(workspace_id, str(uuid4()))


def ignore(_: Progress) -> None:
    pass


def stalled_jobs(harness: KubernetesJobHarness, lease_seconds: int) -> KubernetesStorageJobs:
    return harness.jobs_with(job_image=f"{STALLED_JOB_IMAGE}:latest", lease_seconds=lease_seconds)


def in_cluster(work: Callable[[], None]) -> Awaitable[None]:
    """Run something slow without stopping the jobs of this process."""
    return asyncio.to_thread(work)


@pytest.mark.parametrize(("server", "node"), [("kube-apiserver", None), ("kubelet", NODE)])
async def test_a_job_goes_on_after_a_restart(
    harness: KubernetesJobHarness,
    cluster: Cluster,
    workspace_id: WorkspaceId,
    key: str,
    server: str,
    node: str | None,
) -> None:
    job = await RunningJob(stalled_jobs(harness, LONG_LEASE), workspace_id, key).begun()
    processes = harness.processes_of(workspace_id)
    await in_cluster(lambda: cluster.restart(server, node))
    await until_ready(cluster)
    lease = harness.lease_of(workspace_id)

    async def is_renewed() -> bool:
        return harness.lease_of(workspace_id) != lease

    await until(is_renewed, "the lease is renewed")
    assert not job.task.done()
    assert harness.processes_of(workspace_id) == processes
    await job.cancel()
    await harness.jobs.archive(workspace_id, key, ignore)


async def test_a_job_on_a_node_that_lost_the_cluster_has_ended_before_its_pod_is_removed_by_force(
    harness: KubernetesJobHarness, cluster: Cluster, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    job = await RunningJob(stalled_jobs(harness, SHORT_LEASE), workspace_id, key).begun()
    processes = harness.processes_of(workspace_id)
    cluster.freeze("kubelet", NODE)
    try:
        with pytest.raises(Transient, match=f"{NODE} .* does not respond") as caught:
            await job.task
        # Nobody has told it: its lease was over.
        assert not [pid for pid in processes if psutil.pid_exists(pid)]
        assert caught.value.reason is ErrorReason.UNREACHABLE
        assert (harness.job_pods(), harness.secrets()) == ([], [])
    finally:
        cluster.thaw("kubelet", NODE)
    await until_ready(cluster)
    await harness.jobs.archive(workspace_id, key, ignore)
    assert meta_key(key) in await bucket.keys()


async def test_a_job_on_a_node_without_power_is_removed_and_runs_again_when_the_node_is_back(
    harness: KubernetesJobHarness, cluster: Cluster, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    job = await RunningJob(stalled_jobs(harness, SHORT_LEASE), workspace_id, key).begun()
    await in_cluster(lambda: cluster.stop_node(NODE))
    try:
        with pytest.raises(Transient, match=f"{NODE} .* does not respond") as caught:
            await job.task
        assert caught.value.reason is ErrorReason.UNREACHABLE
        assert (harness.job_pods(), harness.secrets()) == ([], [])
    finally:
        await in_cluster(lambda: cluster.start_node(NODE))
    await harness.jobs.archive(workspace_id, key, ignore)
    assert meta_key(key) in await bucket.keys()


async def until_ready(cluster: Cluster) -> None:
    async def is_ready() -> bool:
        return await asyncio.to_thread(cluster.is_ready)

    await until(is_ready, "the cluster is ready again")
