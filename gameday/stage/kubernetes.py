"""The Kubernetes backend of a stage: homes are claims, instances and jobs are Pods of one namespace."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from uuid import uuid4

from lightkube.core.client import LabelSelector
from lightkube.resources.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret

from codehub.adapters.docker.engine import ignore_statuses, open_engine
from codehub.adapters.kubernetes.client import (
    Kubernetes,
    metadata_of,
    open_kubernetes,
    translate_read_errors,
    uid_of,
)
from codehub.adapters.kubernetes.options import COMPONENT_LABEL, MIB, PROJECT_LABEL, Component
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import WORKSPACE_LABEL, parse_volume_name, volume_name
from codehub.embedded.free_ports import choose_ports
from codehub.settings import Settings
from gameday.stage.cluster import ClusterOperator, operated_cluster
from gameday.stage.ide import BASE_IMAGE, LABELS, build_image
from gameday.stage.namespace import create_namespace, evict, remove_namespace
from gameday.stage.pod_processes import first_process, kill_processes, pod_processes

IMAGE = "codehub-gameday-ide"
RUNNING = "Running"
POLL_SECONDS = 0.5
REMOVAL_SECONDS = 120.0
NOTHING = Path("/nonexistent")
# Short, so that a lot happens within minutes.
LAUNCH_SECONDS = 60
STOP_SECONDS = 5
# Longer than any node is down in a game.
FORCE_SECONDS = 120


@dataclass(frozen=True)
class PodIdentity:
    """A Pod that exists or has existed."""

    name: str
    workspace_id: str
    component: str


class KubernetesBackend:
    """Asks the API server and reads the processes of this machine; instances and jobs are named by uid."""

    def __init__(self, kubernetes: Kubernetes, cluster: ClusterOperator) -> None:
        self._kubernetes = kubernetes
        self.cluster = cluster
        self._egress_port = choose_ports(["egress"], {})["egress"]
        # A process tells only the uid of its Pod, so remember every Pod ever found.
        self._known: dict[str, PodIdentity] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        described = self.cluster.description
        egress = f"{described.host_address}:{self._egress_port}"
        values = {
            "KUBECONFIG": str(described.kubeconfig),
            "NAMESPACE": self._project,
            "PROJECT": self._project,
            "STORAGE_CLASS": described.storage_class,
            "VOLUME_BYTES": str(100 * MIB),
            # Many Pods share the memory of one machine.
            "MEMORY_BYTES": str(256 * MIB),
            "REQUESTED_MEMORY_BYTES": str(32 * MIB),
            "REQUESTED_CPUS": "0.01",
            "IMAGE_LABELS": json.dumps({IMAGE: LABELS}),
            "EGRESS_ADDRESS": egress,
            "LAUNCH_SECONDS": str(LAUNCH_SECONDS),
            "STOP_SECONDS": str(STOP_SECONDS),
            "FORCE_SECONDS": str(FORCE_SECONDS),
        }
        return {
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "k8s",
            "CODEHUB_WORKSPACES_STORAGE_BACKEND": "pvc",
            "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": self.image,
            "CODEHUB_EGRESS_ADDRESS": egress,
            **{f"CODEHUB_KUBERNETES_{name}": value for name, value in values.items()},
        }

    @property
    def image(self) -> str:
        return f"{IMAGE}:{self._project}"

    @property
    def host(self) -> str:
        return self.cluster.description.host_address

    @property
    def _project(self) -> str:
        return self._kubernetes.namespace

    # -- what exists

    async def home(self, workspace_id: str) -> Path:
        with translate_read_errors():
            name = volume_name(WorkspaceId(workspace_id))
            claim = await self._kubernetes.find(PersistentVolumeClaim, name)
            volume_id = claim.spec.volumeName if claim and claim.spec else None
            if not volume_id:
                return NOTHING
            volume = await self._kubernetes.client.get(PersistentVolume, volume_id)
        local = volume.spec.local if volume.spec else None
        return Path(local.path) if local else NOTHING

    async def volumes(self) -> list[str]:
        labels: LabelSelector = {PROJECT_LABEL: self._project}
        with translate_read_errors():
            claims = self._kubernetes.client.list(PersistentVolumeClaim, labels=labels)
            names = [metadata_of(each).name or "" async for each in claims]
        return [str(found) for name in names if (found := parse_volume_name(name))]

    async def instances(self) -> dict[str, list[str]]:
        """Return the Pods of workspaces, and those whose processes run although the Pod is gone."""
        running = await asyncio.to_thread(pod_processes)
        existing = {uid_of(pod) for pod in await self._list_pods(Component.WORKSPACE)}
        found = defaultdict(list)
        for uid, pod in self._known.items():
            if pod.component == Component.WORKSPACE and (uid in existing or uid in running):
                found[pod.workspace_id].append(uid)
        return dict(found)

    async def jobs(self) -> list[str]:
        return [uid_of(pod) for pod in await self._list_pods(Component.STORAGE_JOB) if _runs(pod)]

    async def leftovers(self) -> dict[str, list[str]]:
        """Return the Secrets of jobs, and the Pods of jobs that do not run."""
        with translate_read_errors():
            listed = self._kubernetes.client.list(Secret, labels={PROJECT_LABEL: self._project})
            secrets = [each async for each in listed]
        jobs = [pod for pod in await self._list_pods(Component.STORAGE_JOB) if not _runs(pod)]
        found = defaultdict(list)
        for each in (*secrets, *jobs):
            metadata = metadata_of(each)
            owner = (metadata.labels or {}).get(WORKSPACE_LABEL, "nobody")
            found[owner].append(f"{type(each).__name__} {metadata.name}")
        return dict(found)

    async def versions(self) -> Mapping[str, str]:
        return {"Kubernetes": await self._kubernetes.read_version()}

    # -- faults

    async def kill_instance(self, name: str) -> None:
        await asyncio.to_thread(kill_processes, name)

    async def remove_instance(self, name: str) -> None:
        with translate_read_errors():
            await self._kubernetes.delete(Pod, self._known[name].name, uid=name)

    async def evict(self, name: str) -> None:
        """Evict a Pod; succeed if it is gone."""
        with translate_read_errors():
            await evict(self._kubernetes, self._known[name].name)

    async def kill_job(self, name: str) -> None:
        await asyncio.to_thread(kill_processes, name)

    async def job_pid(self, name: str) -> int | None:
        return await asyncio.to_thread(first_process, name)

    # -- the whole

    def unavailable(self) -> list[str]:
        return self.cluster.broken

    async def wait_ready(self) -> None:
        with self.cluster.breaking("the cluster"):
            while not await self.is_ready():  # noqa: ASYNC110 (there is no event to wait for)
                await asyncio.sleep(POLL_SECONDS)

    async def is_ready(self) -> bool:
        """Return whether the API server responds and all nodes are ready."""
        ready = await self._find_ready_nodes()
        return ready is not None and ready >= set(self.cluster.description.nodes)

    async def responds(self) -> bool:
        """Return whether the API server responds."""
        return await self._find_ready_nodes() is not None

    async def _find_ready_nodes(self) -> set[str] | None:
        """Return the names of the nodes that are ready, or None if nobody can tell."""
        try:
            with translate_read_errors():
                listed = self._kubernetes.client.list(Node)
                return {metadata_of(each).name or "" async for each in listed if _is_ready(each)}
        except Transient:
            return None

    async def _list_pods(self, component: Component) -> Sequence[Pod]:
        labels: LabelSelector = {PROJECT_LABEL: self._project, COMPONENT_LABEL: component.value}
        with translate_read_errors():
            pods = [each async for each in self._kubernetes.client.list(Pod, labels=labels)]
        for pod in pods:
            metadata = metadata_of(pod)
            workspace_id = (metadata.labels or {}).get(WORKSPACE_LABEL, "nobody")
            self._known[uid_of(pod)] = PodIdentity(metadata.name or "", workspace_id, component)
        return pods

    async def set_up(self) -> None:
        """Create the namespace, and load the images into the nodes."""
        await self.cluster.request("load", self.image, BASE_IMAGE)
        await create_namespace(self._kubernetes)

    async def remove_everything(self) -> None:
        """Remove the namespace with everything in it, as far as the cluster allows."""
        with suppress(Transient, TimeoutError):
            async with asyncio.timeout(REMOVAL_SECONDS):
                await self.wait_ready()
                with translate_read_errors():
                    await remove_namespace(self._kubernetes)


@asynccontextmanager
async def kubernetes_backend(command: str) -> AsyncIterator[KubernetesBackend]:
    """Open the backend on the cluster that the program operates; remove the namespace at the end."""
    project = f"gameday-{uuid4().hex[:12]}"
    async with (
        operated_cluster(command) as cluster,
        open_engine(Settings().docker.url) as engine,
        open_kubernetes(cluster.description.kubeconfig, project) as kubernetes,
    ):
        backend = KubernetesBackend(kubernetes, cluster)
        try:
            await build_image(engine, backend.image)
            await backend.set_up()
            yield backend
        finally:
            await backend.remove_everything()
            with ignore_statuses(HTTPStatus.NOT_FOUND):
                await engine.images.delete(backend.image, force=True)


def _runs(pod: Pod) -> bool:
    return pod.status is not None and pod.status.phase == RUNNING


def _is_ready(node: Node) -> bool:
    conditions = (node.status.conditions if node.status else None) or []
    return any(each.type == "Ready" and each.status == "True" for each in conditions)
