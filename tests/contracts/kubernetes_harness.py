"""Instances, volumes and a home store on the test cluster, and what a test can do to them."""

import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from codehub.adapters.kubernetes.client import Kubernetes, open_kubernetes
from codehub.adapters.kubernetes.home_store import KubernetesHomeStore
from codehub.adapters.kubernetes.instances import KubernetesInstances
from codehub.adapters.kubernetes.jobs.storage_jobs import KubernetesStorageJobs
from codehub.adapters.kubernetes.options import (
    MIB,
    PROJECT_LABEL,
    Claims,
    KubernetesOptions,
    Resources,
    Timeouts,
)
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from codehub.image_traits import ImageTraits
from codehub.ports import Instances
from testkit.docker_engine import JOB_IMAGE, build, need_docker
from testkit.fakes import IMAGE, NEVER_READY_IMAGE
from testkit.kubernetes.api import Api, is_true
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until
from tests.contracts.home_store_harness import ARCHIVES
from tests.contracts.instance_harness import ask

Resource = dict[str, Any]
# The scheduler tells its choice to the provisioner with it.
SELECTED_NODE = "volume.kubernetes.io/selected-node"
# As in the labels of testkit/docker_images/tiny-ide.Dockerfile, which Kubernetes does not tell.
TINY_IDE = ImageTraits(
    ide="tiny",
    health_path="/w/{id}/health",
    keep_prefix=True,
    read_only_root=True,
    secret_variable="TOKEN",  # noqa: S106 (a name)
    secret_header="Authorization: token {secret}",  # noqa: S106 (a pattern)
    agent_port=3129,
    socket_arguments="{socket}",
)
# Nobody listens there.
DEAD_SERVER = "https://127.0.0.1:9"
_loaded: set[Path] = set()


def load_images(cluster: Cluster) -> None:
    """Build the images of the tiny IDE, and load them into the nodes."""
    need_docker(JOB_IMAGE)
    build(IMAGE, "tiny-ide.Dockerfile")
    build(NEVER_READY_IMAGE, "tiny-ide.Dockerfile", "FLAG=mute")
    if cluster.directory not in _loaded:
        cluster.load_images(f"{IMAGE}:latest", f"{NEVER_READY_IMAGE}:latest")
        _loaded.add(cluster.directory)


class Namespace:
    """A namespace of the test cluster, which the tests of a module share."""

    def __init__(self, cluster: Cluster, api: Api, name: str) -> None:
        self.cluster = cluster
        self.api = api
        self.name = name

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.name}"

    def remove(self) -> None:
        self.api.delete(self.path)
        wait_until(lambda: self.api.find(self.path) is None, "the namespace is gone")


@contextmanager
def opened_namespace(cluster: Cluster) -> Iterator[Namespace]:
    """Create a namespace; remove it with everything in it."""
    load_images(cluster)
    with Api(cluster.kubeconfig) as api:
        namespace = Namespace(cluster, api, f"test-{uuid4()}")
        api.create("/api/v1/namespaces", {"metadata": {"name": namespace.name}})
        account = f"{namespace.path}/serviceaccounts/default"
        wait_until(lambda: api.find(account) is not None, "the namespace can have Pods")
        try:
            yield namespace
        finally:
            namespace.remove()


def test_options() -> KubernetesOptions:
    return KubernetesOptions(
        project=f"test-{uuid4()}",
        base_path="/w/{id}/",
        default_image=IMAGE,
        image_traits={IMAGE: TINY_IDE, NEVER_READY_IMAGE: TINY_IDE},
        claims=Claims(storage_class="local", size_bytes=100 * MIB),
        # Many Pods share the memory of one machine.
        resources=Resources(memory_bytes=256 * MIB, requested_memory_bytes=32 * MIB, requested_cpus=0.01),
        timeouts=Timeouts(start=120, stop=5, pull_failures=2),
    )


class KubernetesHarness:
    def __init__(
        self, namespace: Namespace, kubernetes: Kubernetes, dead: Kubernetes, options: KubernetesOptions
    ) -> None:
        self.namespace = namespace
        self.api = namespace.api
        self.kubernetes = kubernetes
        self.dead = dead
        self.options = options
        self.instances = KubernetesInstances(kubernetes, options)
        self.volumes = KubernetesVolumes(kubernetes, options)
        self.store = KubernetesHomeStore(kubernetes, options)
        self.jobs = KubernetesStorageJobs(kubernetes, options, ARCHIVES)

    # -- the instance

    def kill(self, workspace_id: WorkspaceId) -> None:
        self.signal(workspace_id, signal.SIGKILL)
        self._wait_for_pod(workspace_id, lambda pod: pod["status"]["phase"] in {"Failed", "Succeeded"})

    def hang(self, workspace_id: WorkspaceId) -> None:
        self.signal(workspace_id, signal.SIGSTOP)
        self._wait_for_pod(workspace_id, lambda pod: not is_true(pod, "Ready"))

    def resume(self, workspace_id: WorkspaceId) -> None:
        self.signal(workspace_id, signal.SIGCONT)
        self._wait_for_pod(workspace_id, lambda pod: is_true(pod, "Ready"))

    def signal(self, workspace_id: WorkspaceId, number: signal.Signals) -> None:
        for pid in processes_of(workspace_id):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def with_options(self, **changes: Any) -> KubernetesInstances:  # noqa: ANN401 (any option)
        return KubernetesInstances(self.kubernetes, replace(self.options, **changes))

    def with_short_timeouts(self) -> Instances:
        return self.with_options(timeouts=replace(self.options.timeouts, start=1, stop=1))

    def reconfigure(self) -> None:
        resources = replace(self.options.resources, memory_bytes=200 * MIB)
        self.options = replace(self.options, resources=resources)
        self.instances = KubernetesInstances(self.kubernetes, self.options)

    def count(self, workspace_id: WorkspaceId) -> int:
        processes = processes_of(workspace_id)
        return sum(parent not in processes for parent in processes.values())

    def make_unreachable(self) -> None:
        self.instances = KubernetesInstances(self.dead, self.options)
        self.volumes = KubernetesVolumes(self.dead, self.options)
        self.store = KubernetesHomeStore(self.dead, self.options)

    async def listen(self, workspace_id: WorkspaceId) -> int:
        return int(await ask(await self.instances.find_upstream(workspace_id), workspace_id, "listen"))

    # -- its home

    def write(self, workspace_id: WorkspaceId, name: str, content: bytes) -> None:
        (self.home(workspace_id) / name).write_bytes(content)

    def read(self, workspace_id: WorkspaceId) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.home(workspace_id).iterdir()}

    def home(self, workspace_id: WorkspaceId) -> Path:
        """Return the directory of the volume; a claim that waits for its first Pod gets one."""
        claim = self.api.get(self.claim_path(workspace_id))
        if SELECTED_NODE not in claim["metadata"].get("annotations", {}):
            annotations = {"metadata": {"annotations": {SELECTED_NODE: "node1"}}}
            self.api.patch(self.claim_path(workspace_id), annotations)
        volume = f"/api/v1/persistentvolumes/pvc-{claim['metadata']['uid']}"
        wait_until(lambda: self.api.find(volume) is not None, "the claim has a volume")
        return Path(self.api.get(volume)["spec"]["local"]["path"])

    # -- objects of the cluster, without the adapters

    def pod_path(self, workspace_id: WorkspaceId) -> str:
        return f"{self.namespace.path}/pods/{container_name(workspace_id)}"

    def claim_path(self, workspace_id: WorkspaceId) -> str:
        return f"{self.namespace.path}/persistentvolumeclaims/{volume_name(workspace_id)}"

    def find_pod(self, workspace_id: WorkspaceId) -> Resource | None:
        return self.api.find(self.pod_path(workspace_id))

    def find_claim(self, workspace_id: WorkspaceId) -> Resource | None:
        return self.api.find(self.claim_path(workspace_id))

    def list_mine(self, kind: str) -> list[Resource]:
        selected = f"labelSelector={PROJECT_LABEL}={self.options.project}"
        return self.api.list(f"{self.namespace.path}/{kind}?{selected}")

    def replace_store(self) -> None:
        """Remove the marker. The id of the namespace stays, as after a wiped one that was set up again."""
        self.api.delete(f"{self.namespace.path}/configmaps/{self.options.marker_name}")

    def _wait_for_pod(self, workspace_id: WorkspaceId, holds: Callable[[Resource], bool]) -> None:
        """Wait until the kubelet has noticed a change; the provider cannot know it earlier."""

        def noticed() -> bool:
            pod = self.find_pod(workspace_id)
            return pod is None or holds(pod)

        wait_until(noticed, "the kubelet has noticed it")

    def clean_up(self) -> None:
        """Remove what the test left, without waiting: the namespace waits at the end."""
        for kind in ("pods", "persistentvolumeclaims", "configmaps"):
            for each in self.list_mine(kind):
                name = each["metadata"]["name"]
                self.api.delete(f"{self.namespace.path}/{kind}/{name}?gracePeriodSeconds=0")


@asynccontextmanager
async def opened_harness(namespace: Namespace, directory: Path) -> AsyncIterator[KubernetesHarness]:
    configuration = json.loads(namespace.cluster.kubeconfig.read_text())
    configuration["clusters"][0]["cluster"]["server"] = DEAD_SERVER
    (directory / "dead.kubeconfig").write_text(json.dumps(configuration))
    async with (
        open_kubernetes(namespace.cluster.kubeconfig, namespace.name) as kubernetes,
        open_kubernetes(directory / "dead.kubeconfig", namespace.name) as dead,
    ):
        harness = KubernetesHarness(namespace, kubernetes, dead, test_options())
        try:
            yield harness
        finally:
            harness.clean_up()


def processes_of(workspace_id: WorkspaceId) -> dict[int, int]:
    """Return the processes of an instance with their parents; the nodes are on this machine."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("CODEHUB_WORKSPACE_ID") == workspace_id:
                found[process.pid] = process.ppid()
    return found
