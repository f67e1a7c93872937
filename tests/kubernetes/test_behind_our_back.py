"""What others do to Pods and claims: a Pod comes back, and a missing home is lost, never empty."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from codehub.domain.states import DesiredState, ErrorReason, Phase
from codehub.providers import open_providers
from codehub.services.errors import RequestRefused
from testkit.deployment import Deployment, Servers
from testkit.trees import Description
from testkit.waiting import until
from tests.contracts.instance_harness import fetch
from tests.contracts.kubernetes_harness import Namespace
from tests.kubernetes.deployment import open_kubernetes_deployment, purge, wait_until_nothing_is_left
from tests.kubernetes.fixtures import shared_namespace
from tests.kubernetes.held_operations import HELD_IMAGE, load_held_images

__all__ = ["shared_namespace"]


@pytest.fixture(scope="module")
async def deployment(
    servers: Servers, shared_namespace: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    load_held_images(shared_namespace.cluster)
    directory: Path = tmp_path_factory.mktemp("deployment")
    async with open_kubernetes_deployment(servers, shared_namespace, directory, HELD_IMAGE) as deployment:
        yield deployment


@pytest.fixture(scope="module", autouse=True)
def worker(deployment: Deployment) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker with its watches and sweeps."""
    with deployment.worker_process() as process:
        yield process


@dataclass(frozen=True)
class World:
    """One workspace with a complete home, and the cluster as others see it."""

    deployment: Deployment
    namespace: Namespace
    workspace_id: WorkspaceId
    home: Description

    @classmethod
    async def create(cls, deployment: Deployment, namespace: Namespace, desired: DesiredState) -> "World":
        workspace_id = await deployment.create(DesiredState.STANDBY)
        await deployment.wake(workspace_id)
        await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
        deployment.fill_home(workspace_id)
        world = cls(deployment, namespace, workspace_id, deployment.describe_home(workspace_id))
        if desired is not DesiredState.STANDBY:
            await deployment.move_to(workspace_id, desired)
        return world

    @property
    def pod_path(self) -> str:
        return f"{self.namespace.path}/pods/{container_name(self.workspace_id)}"

    @property
    def claim_path(self) -> str:
        return f"{self.namespace.path}/persistentvolumeclaims/{volume_name(self.workspace_id)}"

    def find_pod(self) -> dict[str, Any] | None:
        return self.namespace.api.find(self.pod_path)

    def find_claim(self) -> dict[str, Any] | None:
        return self.namespace.api.find(self.claim_path)

    async def delete_pod(self) -> None:
        self.namespace.api.delete(self.pod_path)

    async def evict_pod(self) -> None:
        """Evict it as `kubectl drain` does."""
        name = {"name": container_name(self.workspace_id), "namespace": self.namespace.name}
        body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": name}
        self.namespace.api.create(f"{self.pod_path}/eviction", body)

    async def exhaust_memory(self) -> None:
        async with open_providers(self.deployment.settings) as providers:
            upstream = await providers.instances.find_upstream(self.workspace_id)
        with suppress(ConnectionError):
            await fetch(upstream, "/exhaust")

    async def wait_for_another_pod(self, earlier_uid: str) -> None:
        async def is_replaced() -> bool:
            pod = self.find_pod()
            return pod is not None and pod["metadata"]["uid"] != earlier_uid

        await until(is_replaced, "another Pod has its name")
        await self.deployment.wait_for_phase(self.workspace_id, Phase.RUNNING)

    async def wait_until_lost(self) -> None:
        async def is_lost() -> bool:
            return (await self.deployment.look(self.workspace_id)).phase is Phase.ERROR

        await until(is_lost, "the loss is noticed")
        snapshot = await self.deployment.look(self.workspace_id)
        assert snapshot.error_reason is ErrorReason.DATA_LOST

    async def wait_until_idle(self) -> None:
        """Wait until the workflow has ended: then it has seen every wake."""
        workflow_id = workspace_workflow_id(self.workspace_id)
        await self.deployment.client.get_workflow_handle(workflow_id).result()


BLOWS: dict[str, Callable[[World], Awaitable[None]]] = {
    "deleted": World.delete_pod,
    "evicted": World.evict_pod,
    "out of memory": World.exhaust_memory,
}


async def test_a_pod_that_others_end_comes_back_with_its_home(
    deployment: Deployment, shared_namespace: Namespace
) -> None:
    async def endure(blow: Callable[[World], Awaitable[None]]) -> None:
        world = await World.create(deployment, shared_namespace, DesiredState.RUNNING)
        pod = world.find_pod()
        assert pod is not None
        await blow(world)
        await world.wait_for_another_pod(pod["metadata"]["uid"])
        snapshot = await deployment.look(world.workspace_id)
        assert (snapshot.error_reason, snapshot.error_count) == (None, 0)
        assert deployment.describe_home(world.workspace_id) == world.home
        await purge(deployment, world.workspace_id)

    results = await asyncio.gather(*map(endure, BLOWS.values()), return_exceptions=True)
    failed = {name: result for name, result in zip(BLOWS, results, strict=True) if result is not None}
    assert not failed, "\n".join(f"{name}: {error!r}" for name, error in failed.items())
    await wait_until_nothing_is_left(deployment, shared_namespace.api)


@pytest.mark.parametrize("phase", [DesiredState.STANDBY, DesiredState.RUNNING])
async def test_a_claim_that_others_delete_is_a_lost_home_and_never_an_empty_one(
    phase: DesiredState, deployment: Deployment, shared_namespace: Namespace
) -> None:
    world = await World.create(deployment, shared_namespace, phase)
    shared_namespace.api.delete(world.claim_path)
    if phase is DesiredState.RUNNING:
        # Kubernetes keeps it as long as the Pod uses it.
        assert world.find_claim() is not None
        await deployment.want(world.workspace_id, DesiredState.STANDBY)
        await deployment.wake(world.workspace_id)
    await world.wait_until_lost()
    with suppress(RequestRefused):
        await deployment.want(world.workspace_id, DesiredState.RUNNING)
    await deployment.wake(world.workspace_id)
    await world.wait_until_idle()
    await world.wait_until_lost()
    assert (world.find_claim(), world.find_pod()) == (None, None)
    await purge(deployment, world.workspace_id)
    await wait_until_nothing_is_left(deployment, shared_namespace.api)
