"""Storage jobs on the test cluster; a test reads and writes the volumes of the nodes directly."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from codehub.adapters.kubernetes.claims import wanted_claim
from codehub.adapters.kubernetes.jobs.manifest import LEASE_ANNOTATION, LEASE_SECONDS
from codehub.adapters.kubernetes.jobs.storage_jobs import KubernetesStorageJobs
from codehub.adapters.kubernetes.options import MIB, USER_ID, Component, Resources
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import job_name
from codehub.ports import ArchiveStore
from testkit.docker_engine import JOB_IMAGE, STALLED_JOB_IMAGE, build, need_docker
from testkit.kubernetes.cluster import Cluster
from tests.buckets import Bucket
from tests.contracts.job_harness import Files
from tests.contracts.kubernetes_harness import (
    SELECTED_NODE,
    KubernetesHarness,
    Namespace,
    Resource,
    opened_harness,
)
from tests.forwarded_stores import store_at

# As the kubelet leaves the root of a volume that belongs to a group; it does not change the files below then.
ROOT_MODE = 0o2775
ENDED = {"Succeeded", "Failed"}
CGROUPS = Path("/sys/fs/cgroup")
JOB_RESOURCES = Resources(memory_bytes=512 * MIB, requested_memory_bytes=64 * MIB, requested_cpus=0.01)
_loaded: set[Path] = set()


def load_job_images(cluster: Cluster) -> None:
    need_docker(JOB_IMAGE)
    build(STALLED_JOB_IMAGE, "stalled-job.Dockerfile")
    if cluster.directory not in _loaded:
        cluster.load_images(JOB_IMAGE, f"{STALLED_JOB_IMAGE}:latest")
        _loaded.add(cluster.directory)


class KubernetesJobHarness:
    def __init__(self, cluster: KubernetesHarness, bucket: Bucket, store: ArchiveStore) -> None:
        self.cluster = cluster
        self.options = replace(cluster.options, job_image=JOB_IMAGE, job_resources=JOB_RESOURCES)
        self.store = store
        self.jobs = self.jobs_with()
        nowhere = replace(store, endpoint_url="http://127.0.0.1:1")
        self.cut_off = KubernetesStorageJobs(cluster.kubernetes, self.options, nowhere)
        self._bucket = bucket

    def jobs_with(
        self,
        *,
        lease_seconds: float = LEASE_SECONDS,
        **changes: Any,  # noqa: ANN401 (any option)
    ) -> KubernetesStorageJobs:
        options = replace(self.options, **changes)
        return KubernetesStorageJobs(
            self.cluster.kubernetes, options, self.store, lease_seconds=lease_seconds
        )

    # -- homes

    def write_home(self, workspace_id: WorkspaceId, files: Files) -> None:
        home = self.find_home(workspace_id) or self.create_home(workspace_id)
        for name, content in files.items():
            (home / name).write_bytes(content)
            os.chown(home / name, USER_ID, USER_ID)

    def read_home(self, workspace_id: WorkspaceId) -> Files | None:
        home = self.find_home(workspace_id)
        return {file.name: file.read_bytes() for file in home.iterdir()} if home else None

    def create_home(self, workspace_id: WorkspaceId, node: str = "node1") -> Path:
        """Create a claim with a volume on this node; return the directory of the volume."""
        claim = wanted_claim(workspace_id, self.options).to_dict()
        claim["metadata"]["annotations"] = {SELECTED_NODE: node}
        self.cluster.api.create(f"{self.cluster.namespace.path}/persistentvolumeclaims", claim)
        home = self.cluster.home(workspace_id)
        os.chown(home, 0, USER_ID)
        home.chmod(ROOT_MODE)
        return home

    def find_home(self, workspace_id: WorkspaceId) -> Path | None:
        return self.cluster.home(workspace_id) if self.cluster.find_claim(workspace_id) else None

    def node_of(self, workspace_id: WorkspaceId) -> str:
        """Return the node that has the volume."""
        claim = self.cluster.find_claim(workspace_id)
        assert claim is not None
        return str(claim["metadata"]["annotations"][SELECTED_NODE])

    # -- archives

    async def read(self, key: str) -> bytes | None:
        return await self._bucket.read(key) if key in await self._bucket.keys() else None

    async def write(self, key: str, content: bytes) -> None:
        await self._bucket.write(key, content)

    # -- jobs

    @contextmanager
    def stalled(self) -> Iterator[None]:
        jobs = self.jobs
        self.jobs = self.jobs_with(job_image=f"{STALLED_JOB_IMAGE}:latest")
        yield
        self.jobs = jobs

    def count(self) -> int:
        return len([pod for pod in self.job_pods() if pod["status"]["phase"] not in ENDED])

    def job_pods(self) -> list[Resource]:
        labels = self.options.selector(Component.STORAGE_JOB).items()
        return [pod for pod in self.cluster.list_mine("pods") if labels <= pod["metadata"]["labels"].items()]

    def secrets(self) -> list[Resource]:
        return self.cluster.list_mine("secrets")

    def read_job(self, workspace_id: WorkspaceId) -> Resource:
        return self.cluster.api.get(self.job_path(workspace_id))

    def lease_of(self, workspace_id: WorkspaceId) -> str:
        """Return what the caller has written last."""
        return str(self.read_job(workspace_id)["metadata"]["annotations"][LEASE_ANNOTATION])

    def processes_of(self, workspace_id: WorkspaceId) -> set[int]:
        """Return the processes of a running job; the nodes are on this machine."""
        [status] = self.read_job(workspace_id)["status"]["containerStatuses"]
        container = status["containerID"].rpartition("/")[2]
        groups = [path for path in CGROUPS.rglob(f"*{container}*") if path.is_dir()]
        pids = {int(pid) for group in groups for pid in (group / "cgroup.procs").read_text().split()}
        assert pids
        return pids

    def job_path(self, workspace_id: WorkspaceId) -> str:
        return f"{self.cluster.namespace.path}/pods/{job_name(workspace_id)}"


@asynccontextmanager
async def opened_job_harness(
    namespace: Namespace, bucket: Bucket, directory: Path
) -> AsyncIterator[KubernetesJobHarness]:
    load_job_images(namespace.cluster)
    async with (
        opened_harness(namespace, directory) as harness,
        store_at(namespace.cluster.host_address, bucket) as (store, _),
    ):
        yield KubernetesJobHarness(harness, bucket, store)
