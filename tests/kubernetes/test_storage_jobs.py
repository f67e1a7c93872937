"""Storage jobs as Pods: homes move between nodes, no credentials stay, and jobs end with their caller."""

import asyncio
import json
import os
import signal
import sys
import uuid
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from codehub.adapters.kubernetes.jobs.leftovers import AbandonedJobs
from codehub.adapters.kubernetes.jobs.manifest import CLEANUP_SECONDS, Job, job_pod
from codehub.adapters.kubernetes.options import MIB, USER_ID, Placement
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.naming import archive_key, job_name, meta_key
from codehub.domain.states import ErrorReason
from codehub.ports import UNRECORDED, Progress
from testkit.docker_engine import STALLED_JOB_IMAGE
from testkit.trees import describe_tree, make_home_of_user, without_root
from testkit.waiting import DEADLINE_SECONDS, until
from tests.buckets import Bucket
from tests.contracts.kubernetes_job_harness import JOB_RESOURCES, KubernetesJobHarness
from tests.contracts.test_storage_jobs import RunningJob
from tests.kubernetes.job_fixtures import harness, shared_namespace

__all__ = ["harness", "shared_namespace"]

REPOSITORY = Path(__file__).parents[2]
CALLER = """
import asyncio, json, sys
from pathlib import Path
from codehub.adapters.kubernetes.client import open_kubernetes
from codehub.adapters.kubernetes.jobs.storage_jobs import KubernetesStorageJobs
from codehub.adapters.kubernetes.options import KubernetesOptions
from codehub.ports import ArchiveStore

kubeconfig, namespace, project, image, store, workspace_id, key, lease = sys.argv[1:]

async def main():
    async with open_kubernetes(Path(kubeconfig), namespace) as kubernetes:
        options = KubernetesOptions(project=project, job_image=image)
        store_access = ArchiveStore(**json.loads(store))
        jobs = KubernetesStorageJobs(kubernetes, options, store_access, lease_seconds=float(lease))
        await jobs.archive(workspace_id, key, lambda _: print("begun", flush=True))

asyncio.run(main())
"""


@pytest.fixture
def workspace_id(harness: KubernetesJobHarness) -> WorkspaceId:
    """Create a workspace with a home."""
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    harness.write_home(workspace_id, {"thesis": b"three years of work"})
    return workspace_id


@pytest.fixture
def key(workspace_id: WorkspaceId) -> str:
    return archive_key(workspace_id, str(uuid.uuid4()))


def ignore(_: Progress) -> None:
    pass


async def test_a_home_is_restored_on_another_node_with_all_attributes(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    home = harness.cluster.home(workspace_id)
    make_home_of_user(home, USER_ID)
    # As in the root of every ext4 volume.
    (home / "lost+found").mkdir(mode=0o700)
    before = without_root(describe_tree(home))
    del before[b"lost+found"]
    await harness.jobs.archive(workspace_id, key, ignore)
    await KubernetesVolumes(harness.cluster.kubernetes, harness.options).remove(workspace_id)

    async def is_gone() -> bool:
        return not home.exists()

    await until(is_gone, "the volume is removed after its claim")
    elsewhere = Placement(node_selector={"kubernetes.io/hostname": "node2"})
    await harness.jobs_with(placement=elsewhere).restore(workspace_id, key, ignore, UNRECORDED)
    assert harness.node_of(workspace_id) == "node2"
    assert without_root(describe_tree(harness.cluster.home(workspace_id))) == before


async def test_an_archive_leaves_the_home_as_it_was(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    home = harness.cluster.home(workspace_id)
    make_home_of_user(home, USER_ID)
    before = without_root(describe_tree(home))
    await harness.jobs.archive(workspace_id, key, ignore)
    assert without_root(describe_tree(home)) == before


async def test_no_pod_and_no_secret_is_left_when_a_job_has_ended(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    await harness.jobs.archive(workspace_id, key, ignore)
    assert (harness.job_pods(), harness.secrets()) == ([], [])
    with pytest.raises(Permanent):
        await harness.jobs.restore(
            workspace_id, archive_key(workspace_id, str(uuid.uuid4())), ignore, UNRECORDED
        )
    assert (harness.job_pods(), harness.secrets()) == ([], [])


async def test_credentials_are_only_in_a_secret_that_its_pod_owns(
    harness: KubernetesJobHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        pod, [secret] = harness.read_job(workspace_id), harness.secrets()
        log = harness.cluster.api.text(f"{harness.job_path(workspace_id)}/log")
        await job.cancel()
    [owner] = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", pod["metadata"]["uid"])
    assert '"progress"' in log
    for credential in (bucket.server.access_key, bucket.server.secret_key):
        assert credential not in json.dumps(pod) + log


async def test_a_job_is_restricted(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        spec = harness.read_job(workspace_id)["spec"]
        await job.cancel()
    [container] = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    assert spec["securityContext"]["runAsUser"] == USER_ID
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["restartPolicy"] == "Never"


async def test_a_killed_job_is_a_failed_action(
    harness: KubernetesJobHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        for pid in harness.processes_of(workspace_id):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(Transient, match="status 137") as caught:
            await job.task
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert (harness.job_pods(), harness.secrets()) == ([], [])
    assert await bucket.keys() == []


async def test_a_job_that_needs_too_much_memory_says_so(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    small = replace(JOB_RESOURCES, memory_bytes=8 * MIB)
    with pytest.raises(Transient, match="more memory than its limit") as caught:
        await harness.jobs_with(job_resources=small).archive(workspace_id, key, ignore)
    assert caught.value.reason is ErrorReason.ACTION_FAILED


async def test_an_image_that_cannot_be_pulled_is_a_permanent_failure_in_the_registrys_words(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    with pytest.raises(Permanent, match=r"registry\.invalid/none:1") as caught:
        await harness.jobs_with(job_image="registry.invalid/none:1").archive(workspace_id, key, ignore)
    assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
    assert (harness.job_pods(), harness.secrets()) == ([], [])


async def test_a_job_that_no_node_can_run_tells_why(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    nowhere = Placement(node_selector={"kubernetes.io/hostname": "none"})
    jobs = harness.jobs_with(placement=nowhere, timeouts=replace(harness.options.timeouts, launch=3))
    with pytest.raises(Transient, match="Unschedulable: 0/2 nodes") as caught:
        await jobs.archive(workspace_id, key, ignore)
    assert caught.value.reason is ErrorReason.ACTION_FAILED


async def test_a_pod_that_is_deleted_behind_our_back_is_a_failed_action(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        harness.cluster.api.delete(f"{harness.job_path(workspace_id)}?gracePeriodSeconds=0")
        with pytest.raises(Transient, match="before it finished") as caught:
            await job.task
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    await harness.jobs.archive(workspace_id, key, ignore)


async def test_a_home_that_disappears_before_its_job_is_not_replaced(
    harness: KubernetesJobHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    harness.cluster.api.delete(harness.cluster.claim_path(workspace_id))
    with pytest.raises(Transient, match="volume of this workspace") as caught:
        await harness.jobs.archive(workspace_id, key, ignore)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert (harness.job_pods(), harness.secrets(), await bucket.keys()) == ([], [], [])


async def test_a_running_job_blocks_removal_of_the_volume(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    volumes = KubernetesVolumes(harness.cluster.kubernetes, harness.options)
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        with pytest.raises(Transient, match=job_name(workspace_id)):
            await volumes.remove(workspace_id)
        assert harness.count() == 1
        await job.cancel()
    await volumes.remove(workspace_id)


async def test_one_of_two_jobs_at_once_is_refused(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    with harness.stalled():
        both = [RunningJob(harness.jobs, workspace_id, key) for _ in range(2)]
        [ended], [active] = await asyncio.wait(
            [job.task for job in both], return_when=asyncio.FIRST_COMPLETED, timeout=DEADLINE_SECONDS
        )
        refusal = ended.exception()
        assert isinstance(refusal, Transient)
        assert (refusal.reason, harness.count()) == (ErrorReason.ACTION_FAILED, 1)
        active.cancel()
        await asyncio.wait([active])
    assert (harness.job_pods(), harness.secrets()) == ([], [])


async def start_caller(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str, lease_seconds: int
) -> asyncio.subprocess.Process:
    """Start a process with a job that never ends, and return when the job runs."""
    namespace, options = harness.cluster.namespace, harness.options
    store = json.dumps(asdict(harness.store))
    image = f"{STALLED_JOB_IMAGE}:latest"
    arguments = (namespace.cluster.kubeconfig, namespace.name, options.project, image, store)
    caller = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CALLER, *arguments, workspace_id, key, str(lease_seconds)),
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert caller.stdout is not None
    assert await caller.stdout.readline() == b"begun\n"
    return caller


async def kill(caller: asyncio.subprocess.Process) -> None:
    caller.kill()
    await caller.wait()


async def test_a_job_whose_caller_was_killed_ends_by_itself(
    harness: KubernetesJobHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    caller = await start_caller(harness, workspace_id, key, lease_seconds=15)
    renewed_at = harness.lease_of(workspace_id)

    async def is_renewed() -> bool:
        nonlocal renewed_at
        before, renewed_at = renewed_at, harness.lease_of(workspace_id)
        return renewed_at != before

    # The job would not live that long without its caller.
    for _ in range(4):
        await until(is_renewed, "the lease is renewed")
    assert harness.count() == 1
    await kill(caller)

    async def ended() -> bool:
        return harness.count() == 0

    await until(ended, "the job ends by itself")
    [status] = harness.read_job(workspace_id)["status"]["containerStatuses"]
    assert "stopped before it finished" in status["state"]["terminated"]["message"]
    assert await bucket.unfinished_uploads() == []
    # What the caller left goes with the next job.
    await harness.jobs.archive(workspace_id, key, ignore)
    assert meta_key(key) in await bucket.keys()
    assert (harness.job_pods(), harness.secrets()) == ([], [])


async def test_what_a_killed_caller_left_is_removed_without_a_next_job(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    caller = await start_caller(harness, workspace_id, key, lease_seconds=15)
    now = 0.0
    abandoned = AbandonedJobs(harness.cluster.kubernetes, harness.options, clock=lambda: now)
    assert await abandoned.remove() == 0
    renewed_at = harness.lease_of(workspace_id)

    async def is_renewed() -> bool:
        return harness.lease_of(workspace_id) != renewed_at

    await until(is_renewed, "the lease is renewed")
    now = 1000.0
    assert await abandoned.remove() == 0
    assert (harness.count(), len(harness.secrets())) == (1, 1)
    await kill(caller)
    assert await abandoned.remove() == 0
    now += 15 + CLEANUP_SECONDS + 1
    assert await abandoned.remove() == 1
    assert harness.secrets() == []

    async def is_gone() -> bool:
        return not harness.job_pods()

    await until(is_gone, "the Pod is gone")
    assert await abandoned.remove() == 0


async def test_the_next_job_replaces_one_whose_caller_was_killed(
    harness: KubernetesJobHarness, bucket: Bucket, workspace_id: WorkspaceId, key: str
) -> None:
    caller = await start_caller(harness, workspace_id, key, lease_seconds=600)
    await kill(caller)
    await harness.jobs.archive(workspace_id, key, ignore)
    assert meta_key(key) in await bucket.keys()
    assert (harness.job_pods(), harness.secrets()) == ([], [])


async def test_a_pod_whose_caller_died_before_the_secret_existed_is_replaced(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    job = Job("archive", workspace_id, b"{}", f"{job_name(workspace_id)}-never", 600)
    await harness.cluster.kubernetes.client.create(job_pod(job, "2026-01-01", harness.options))
    await harness.jobs.archive(workspace_id, key, ignore)
    assert (harness.job_pods(), harness.secrets()) == ([], [])


async def test_a_pod_of_somebody_else_with_the_name_of_a_job_is_left_alone(
    harness: KubernetesJobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    job = Job("archive", workspace_id, b"{}", "never", 600)
    others = replace(harness.options, project="other")
    await harness.cluster.kubernetes.client.create(job_pod(job, "2026-01-01", others))
    with pytest.raises(Transient, match="does not belong to this installation"):
        await harness.jobs.archive(workspace_id, key, ignore)
    assert harness.cluster.api.find(harness.job_path(workspace_id)) is not None
    harness.cluster.api.delete(f"{harness.job_path(workspace_id)}?gracePeriodSeconds=0")
