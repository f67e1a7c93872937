"""A node that is gone: stops end by force, and homes on its disks are out of reach but not lost."""

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from codehub.adapters.kubernetes.instances import KubernetesInstances
from codehub.adapters.kubernetes.options import Placement
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest
from testkit.fakes import IMAGE
from testkit.kubernetes.api import is_true
from testkit.kubernetes.deadline import wait_until
from testkit.waiting import until
from tests.contracts.kubernetes_harness import KubernetesHarness
from tests.kubernetes.fixtures import harness, shared_namespace

__all__ = ["harness", "shared_namespace"]
CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "100Gi"}


class LostNode:
    """A node without a kubelet, as the API knows one that has just gone down, and what runs on it."""

    def __init__(self, harness: KubernetesHarness) -> None:
        self.harness = harness
        self.name = f"lost-{uuid.uuid4()}"
        hostname = {"kubernetes.io/hostname": self.name}
        self.options = replace(
            harness.options,
            placement=Placement(node_selector=hostname, tolerations=({"operator": "Exists"},)),
            timeouts=replace(harness.options.timeouts, stop=1, removal=11, force=3600),
        )
        self.instances = KubernetesInstances(harness.kubernetes, self.options)
        self.volumes = KubernetesVolumes(harness.kubernetes, self.options)
        harness.api.create("/api/v1/nodes", {"metadata": {"name": self.name, "labels": hostname}})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": [ready]}
        harness.api.patch(f"{self.path}/status", {"status": status})

    @property
    def path(self) -> str:
        return f"/api/v1/nodes/{self.name}"

    async def run(self, workspace_id: WorkspaceId) -> None:
        """Start an instance there; only its kubelet could finish the start."""
        await self.volumes.provision(workspace_id)
        starting = asyncio.create_task(
            self.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
        )

        async def scheduled() -> bool:
            pod = self.harness.find_pod(workspace_id)
            return pod is not None and pod["spec"].get("nodeName") == self.name

        await until(scheduled, "the Pod has a node")
        starting.cancel()
        await asyncio.wait([starting])

    def wait_until_not_ready(self) -> None:
        wait_until(lambda: not is_true(self.harness.api.get(self.path), "Ready"), "the node is not ready")

    def remove(self) -> None:
        self.harness.api.delete(self.path)


@pytest.fixture
def node(harness: KubernetesHarness) -> Iterator[LostNode]:
    lost = LostNode(harness)
    yield lost
    lost.remove()


@pytest.fixture
def workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


async def test_a_stop_waits_for_a_silent_node_until_the_node_is_removed_from_the_cluster(
    node: LostNode, workspace_id: WorkspaceId
) -> None:
    await node.run(workspace_id)
    with pytest.raises(Transient, match=node.name) as caught:
        await node.instances.stop(workspace_id)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert await node.instances.observe(workspace_id) is ContainerFact.NOT_READY
    node.remove()
    await node.instances.stop(workspace_id)
    assert await node.instances.observe(workspace_id) is ContainerFact.ABSENT


async def test_a_stop_ends_by_force_after_the_set_time(node: LostNode, workspace_id: WorkspaceId) -> None:
    await node.run(workspace_id)
    impatient = replace(node.options, timeouts=replace(node.options.timeouts, force=1))
    await KubernetesInstances(node.harness.kubernetes, impatient).stop(workspace_id)
    assert await node.instances.observe(workspace_id) is ContainerFact.ABSENT


async def test_a_home_on_the_disk_of_a_lost_node_is_out_of_reach_and_still_listed(
    node: LostNode, workspace_id: WorkspaceId
) -> None:
    await node.run(workspace_id)
    node.wait_until_not_ready()
    for explanation in ("does not respond since", "no longer in the cluster"):
        for call in (
            node.volumes.observe(workspace_id),
            node.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None),
        ):
            with pytest.raises(Transient, match=explanation) as caught:
                await call
            assert caught.value.reason is ErrorReason.UNREACHABLE
            assert node.name in caught.value.message
        assert await node.volumes.list_all() == [workspace_id]
        node.remove()
