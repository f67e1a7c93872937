"""A node is gone with the home of a running workspace on its disk: it waits, or a person recovers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import PersistentVolumeClaim

from activities.observer import Observer
from activities.workspace import WorkspaceActivities
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.bootstrap import open_ports
from codehub.domain.conditions import Resource, Snapshot, WorkspaceId
from codehub.domain.naming import WORKSPACE_LABEL, volume_name
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.policy import policy_of
from codehub.providers import kubernetes_options_of, open_cluster
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from testkit.deployment import Deployment, Servers
from testkit.docker_engine import JOB_IMAGE, need_docker
from testkit.kubernetes.api import is_true
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.provisioner import VOLUMES_PATH
from testkit.waiting import until
from tests.contracts.kubernetes_harness import Namespace
from tests.kubernetes.conftest import need_cluster
from tests.kubernetes.deployment import open_kubernetes_deployment
from tests.kubernetes.fixtures import shared_namespace
from tests.kubernetes.test_lifecycle import node_of_home, node_of_pod
from tests.kubernetes.test_lost_nodes import remove_kept_volumes

__all__ = ["shared_namespace"]


class Killed(Exception):
    """Raised where a worker is killed."""


class DiesBefore(KubernetesVolumes):
    """Dies when the instance is gone."""

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        del workspace_id
        raise Killed


class DiesBetween(KubernetesVolumes):
    """Dies when the volume is kept and its claim is still there."""

    async def _delete(self, claim: PersistentVolumeClaim) -> None:
        del claim
        raise Killed


class DiesAfter(KubernetesVolumes):
    """Dies when the claim is gone, before the row says so."""

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        await super().set_aside(workspace_id)
        raise Killed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster of its own, because the tests break it."""
    need_cluster()
    need_docker(JOB_IMAGE)
    cluster = Cluster(tmp_path_factory.mktemp("recovering"))
    try:
        cluster.start(nodes=2)
        cluster.load_images(JOB_IMAGE)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
async def deployment(
    servers: Servers, shared_namespace: Namespace, tmp_path: Path
) -> AsyncIterator[Deployment]:
    impatient = {"CODEHUB_KUBERNETES_FORCE_SECONDS": "1"}
    async with open_kubernetes_deployment(servers, shared_namespace, tmp_path, **impatient) as deployment:
        yield deployment


async def run_with_older_archive(deployment: Deployment) -> WorkspaceId:
    """Run a workspace with `new` in its home, of which the archive has only `original`."""
    workspace_id = await deployment.create(DesiredState.STANDBY)
    await deployment.wake(workspace_id)
    await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
    deployment.fill_home(workspace_id)
    await deployment.move_to(workspace_id, DesiredState.ARCHIVED)
    await deployment.move_to(workspace_id, DesiredState.RUNNING)
    (deployment.home(workspace_id) / "new").write_text("new")
    return workspace_id


async def wait_until_out_of_reach(
    deployment: Deployment, namespace: Namespace, node: str, workspace_id: WorkspaceId
) -> Snapshot:
    async def is_down() -> bool:
        return not is_true(namespace.api.get(f"/api/v1/nodes/{node}"), "Ready")

    await until(is_down, "the node is not ready")
    await deployment.wake(workspace_id)

    async def is_known() -> bool:
        return (await deployment.look(workspace_id)).conditions.home_is_out_of_reach

    await until(is_known, "the workspace says that its home is out of reach")
    return await deployment.look(workspace_id)


async def wait_until_restored(
    deployment: Deployment, namespace: Namespace, workspace_id: WorkspaceId
) -> None:
    async def runs_in_a_new_home() -> bool:
        # The row says RUNNING from before the loss until it is observed.
        if namespace.api.find(claim_path(namespace, workspace_id)) is None:
            return False
        row = await deployment.look(workspace_id)
        return row.phase is Phase.RUNNING and row.operation is Operation.NONE

    await until(runs_in_a_new_home, "the workspace runs in the home of its archive")


async def recover(deployment: Deployment, workspace_id: WorkspaceId, choice: RecoverChoice) -> None:
    context = RequestContext("test", policy_of(deployment.settings).limits, datetime.now(UTC))
    await request_recovery(deployment.database, workspace_id, choice, context=context)


@asynccontextmanager
async def lost(cluster: Cluster, node: str) -> AsyncIterator[None]:
    """Take the power of a node away; at the end it comes back."""
    await asyncio.to_thread(cluster.stop_node, node)
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start_node, node)


async def observe_and_die(
    deployment: Deployment, workspace_id: WorkspaceId, volumes: type[KubernetesVolumes]
) -> None:
    """Observe once, as a worker that is killed on the way."""
    async with AsyncExitStack() as stack:
        ports = await stack.enter_async_context(open_ports(deployment.settings, deployment.client))
        kubernetes = await stack.enter_async_context(open_cluster(deployment.settings))
        dying = volumes(kubernetes, kubernetes_options_of(deployment.settings))
        observer = Observer(ports.instances, dying, ports.archives)
        with pytest.raises(Killed):
            await WorkspaceActivities(deployment.database, observer).observe(workspace_id)


def kept_volumes(namespace: Namespace, workspace_id: WorkspaceId) -> list[dict[str, Any]]:
    return namespace.api.list(f"{VOLUMES_PATH}?labelSelector={WORKSPACE_LABEL}={workspace_id}")


@pytest.mark.timeout(900)
async def test_the_last_archive_replaces_a_home_on_a_lost_node_whose_disk_is_kept(
    deployment: Deployment, cluster: Cluster, shared_namespace: Namespace
) -> None:
    async with deployment.worker():
        workspace_id = await run_with_older_archive(deployment)
        node = node_of_pod(shared_namespace, workspace_id)
        home = deployment.home(workspace_id)
        await asyncio.to_thread(cluster.stop_node, node)
        waiting = await wait_until_out_of_reach(deployment, shared_namespace, node, workspace_id)
    try:
        assert waiting.error_reason is None
        assert (
            f"the node {node}, which has not responded since" in waiting.conditions.volume_reachable.message
        )
        await recover(deployment, workspace_id, RecoverChoice.RESTORE_ARCHIVE)
        await observe_and_die(deployment, workspace_id, DiesBefore)
        assert kept_volumes(shared_namespace, workspace_id) == []
        await observe_and_die(deployment, workspace_id, DiesBetween)
        assert node_of_home(shared_namespace, workspace_id) == node
        await observe_and_die(deployment, workspace_id, DiesAfter)
        assert shared_namespace.api.find(claim_path(shared_namespace, workspace_id)) is None
        async with deployment.worker():
            await deployment.wake(workspace_id)
            await wait_until_restored(deployment, shared_namespace, workspace_id)
        assert node_of_home(shared_namespace, workspace_id) != node
        assert names_in(deployment.home(workspace_id)) == {"original"}
    finally:
        await asyncio.to_thread(cluster.start_node, node)
    # The node is back: an administrator can get the newest file from its disk.
    (kept,) = kept_volumes(shared_namespace, workspace_id)
    assert kept["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert kept["status"]["phase"] == "Released"
    assert kept["spec"]["local"]["path"] == str(home)
    assert names_in(home) == {"original", "new"}
    remove_kept_volumes(shared_namespace.api, workspace_id)


@pytest.mark.timeout(900)
async def test_a_workspace_that_waits_continues_when_its_node_is_back(
    deployment: Deployment, cluster: Cluster, shared_namespace: Namespace
) -> None:
    async with deployment.worker():
        workspace_id = await run_with_older_archive(deployment)
        node = node_of_pod(shared_namespace, workspace_id)
        async with lost(cluster, node):
            await wait_until_out_of_reach(deployment, shared_namespace, node, workspace_id)
            await recover(deployment, workspace_id, RecoverChoice.WAIT)
            await deployment.wake(workspace_id)
        await deployment.move_to(workspace_id, DesiredState.STANDBY)
        back = await deployment.look(workspace_id)
        assert Resource.VOLUME not in back.waiting_for
        assert names_in(deployment.home(workspace_id)) == {"original", "new"}
        assert kept_volumes(shared_namespace, workspace_id) == []


def claim_path(namespace: Namespace, workspace_id: WorkspaceId) -> str:
    return f"{namespace.path}/persistentvolumeclaims/{volume_name(workspace_id)}"


def names_in(home: Path) -> set[str]:
    """Return the files that the test wrote; the IDE may write others."""
    return {file.name for file in home.iterdir()} & {"original", "new"}
