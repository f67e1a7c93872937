"""A node that is gone: stops end by force, and homes on its disks are out of reach but not lost."""

import asyncio
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codehub.adapters.kubernetes.claims import find_claim
from codehub.adapters.kubernetes.client import open_kubernetes
from codehub.adapters.kubernetes.instances import KubernetesInstances
from codehub.adapters.kubernetes.options import SET_ASIDE_ANNOTATION, Placement
from codehub.adapters.kubernetes.rights import cluster_rights, namespace_rights
from codehub.adapters.kubernetes.set_aside import retain_volume
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.domain.conditions import ContainerFact, VolumeFact, WorkspaceId
from codehub.domain.failures import OutOfReach, Transient
from codehub.domain.naming import WORKSPACE_LABEL, volume_name
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest
from testkit.fakes import IMAGE
from testkit.kubernetes.api import Api, is_true
from testkit.kubernetes.deadline import wait_until
from testkit.kubernetes.provisioner import VOLUMES_PATH
from testkit.waiting import until
from tests.contracts.kubernetes_harness import KubernetesHarness
from tests.kubernetes.fixtures import harness, shared_namespace
from tests.kubernetes.test_doctor import account_token, changed_kubeconfig, grant, granted_in_cluster

__all__ = ["harness", "shared_namespace"]
CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "100Gi"}


def remove_kept_volumes(api: Api, workspace_id: WorkspaceId) -> None:
    """Remove what an administrator would get the files from."""
    selected = f"labelSelector={WORKSPACE_LABEL}={workspace_id}"
    for volume in api.list(f"{VOLUMES_PATH}?{selected}"):
        api.delete(f"{VOLUMES_PATH}/{volume['metadata']['name']}")
        shutil.rmtree(volume["spec"]["local"]["path"])


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

    def volume_of(self, workspace_id: WorkspaceId) -> dict[str, Any]:
        """Return the volume, with or without its claim."""
        volumes = self.harness.api.list(VOLUMES_PATH)
        (found,) = [
            each
            for each in volumes
            if each["spec"]["claimRef"]["name"] == volume_name(workspace_id)
            and each["spec"]["claimRef"]["namespace"] == self.harness.namespace.name
        ]
        return found

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
def workspace_id(node: LostNode) -> Iterator[WorkspaceId]:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    yield workspace_id
    remove_kept_volumes(node.harness.api, workspace_id)


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
    for explanation in ("has not responded since", "no longer in the cluster"):
        for call in (
            node.volumes.observe(workspace_id),
            node.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None),
        ):
            with pytest.raises(OutOfReach, match=explanation) as caught:
                await call
            assert caught.value.reason is ErrorReason.UNREACHABLE
            assert (caught.value.since is None) is (explanation == "no longer in the cluster")
            assert node.name in caught.value.message
        assert await node.volumes.list_all() == [workspace_id]
        node.remove()


async def stranded(node: LostNode, workspace_id: WorkspaceId) -> Path:
    """Lose the node of a stopped workspace; return where its home is."""
    await node.run(workspace_id)
    home = Path(node.volume_of(workspace_id)["spec"]["local"]["path"])
    (home / "thesis").write_text("three years of work")
    node.wait_until_not_ready()
    node.remove()
    await node.instances.stop(workspace_id)
    return home


def assert_kept(node: LostNode, workspace_id: WorkspaceId, home: Path) -> None:
    """Assert that the volume and its files are there without their claim, and say whose they are."""
    volume = node.volume_of(workspace_id)
    wait_until(lambda: node.volume_of(workspace_id)["status"]["phase"] == "Released", "it is released")
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["metadata"]["labels"][WORKSPACE_LABEL] == workspace_id
    assert SET_ASIDE_ANNOTATION in volume["metadata"]["annotations"]
    assert (home / "thesis").read_text() == "three years of work"


async def test_a_home_on_a_lost_node_is_set_aside_with_its_files(
    node: LostNode, workspace_id: WorkspaceId
) -> None:
    home = await stranded(node, workspace_id)
    await node.volumes.set_aside(workspace_id)
    assert await node.volumes.observe(workspace_id) is VolumeFact.ABSENT
    await node.volumes.set_aside(workspace_id)
    assert_kept(node, workspace_id, home)
    # The next claim of this name gets another volume.
    await node.harness.volumes.provision(workspace_id)
    assert node.harness.home(workspace_id) != home
    assert (home / "thesis").exists()


async def test_a_worker_that_dies_after_it_kept_the_volume_is_succeeded(
    node: LostNode, workspace_id: WorkspaceId
) -> None:
    home = await stranded(node, workspace_id)
    claim = await find_claim(node.harness.kubernetes, node.options, workspace_id)
    assert claim is not None
    await retain_volume(node.harness.kubernetes, node.options, workspace_id, claim)
    with pytest.raises(OutOfReach):
        await node.volumes.observe(workspace_id)
    await node.volumes.set_aside(workspace_id)
    assert_kept(node, workspace_id, home)


async def test_the_volume_of_a_claim_that_somebody_is_deleting_is_kept(
    node: LostNode, workspace_id: WorkspaceId
) -> None:
    await node.run(workspace_id)
    home = Path(node.volume_of(workspace_id)["spec"]["local"]["path"])
    (home / "thesis").write_text("three years of work")
    # It terminates while the Pod uses it.
    node.harness.api.delete(node.harness.claim_path(workspace_id))
    node.wait_until_not_ready()
    setting_aside = asyncio.create_task(node.volumes.set_aside(workspace_id))

    async def is_kept() -> bool:
        return bool(node.volume_of(workspace_id)["spec"]["persistentVolumeReclaimPolicy"] == "Retain")

    await until(is_kept, "the volume is kept")
    node.remove()
    await node.instances.stop(workspace_id)
    await setting_aside
    assert_kept(node, workspace_id, home)


async def test_a_home_that_an_instance_uses_is_not_set_aside(
    node: LostNode, workspace_id: WorkspaceId
) -> None:
    await node.run(workspace_id)
    node.wait_until_not_ready()
    with pytest.raises(Transient, match="uses it"):
        await node.volumes.set_aside(workspace_id)
    volume = node.volume_of(workspace_id)
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"


async def test_without_the_right_to_keep_the_volume_nothing_is_given_up(
    node: LostNode, workspace_id: WorkspaceId, tmp_path: Path
) -> None:
    home = await stranded(node, workspace_id)
    harness, name = node.harness, node.volume_of(workspace_id)["metadata"]["name"]
    grant(harness.api, harness.namespace.name, namespace_rights(harness.namespace.name, "none"))
    read_only = [right for right in cluster_rights() if right.verb != "patch"]
    token = account_token(harness.api, harness.namespace.name)
    with granted_in_cluster(harness.api, harness.namespace.name, read_only):
        kubeconfig = changed_kubeconfig(harness.namespace.cluster, tmp_path, token=token)
        async with open_kubernetes(kubeconfig, harness.namespace.name) as limited:
            volumes = KubernetesVolumes(limited, node.options)

            async def is_out_of_reach() -> bool:
                try:
                    await volumes.observe(workspace_id)
                except Transient as failure:
                    return isinstance(failure, OutOfReach)
                return False

            await until(is_out_of_reach, "the rights are in force")
            with pytest.raises(Transient, match=f"kubectl patch pv {name}") as caught:
                await volumes.set_aside(workspace_id)
            assert caught.value.reason is ErrorReason.ACTION_FAILED
            assert harness.find_claim(workspace_id) is not None
            assert node.volume_of(workspace_id)["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
            # As the message says.
            policy = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
            harness.api.patch(f"{VOLUMES_PATH}/{name}", policy)
            await volumes.set_aside(workspace_id)
    assert harness.find_claim(workspace_id) is None
    assert (home / "thesis").read_text() == "three years of work"
    harness.api.delete(f"{VOLUMES_PATH}/{name}")
    shutil.rmtree(home)
