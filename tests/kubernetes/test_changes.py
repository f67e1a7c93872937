"""Changes are noticed by watches that survive cuts, silence and a server that has forgotten their version."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codehub.adapters.kubernetes import transport
from codehub.adapters.kubernetes.changes import KubernetesChanges
from codehub.adapters.kubernetes.client import open_kubernetes
from codehub.domain.conditions import WorkspaceId
from codehub.ports import InstanceRequest
from testkit.fakes import IMAGE
from testkit.kubernetes.fault_proxy import (
    Fault,
    FaultProxy,
    Rule,
    cut,
    end_watch,
    respond,
    respond_with_status,
)
from testkit.network_faults import FaultRelay
from testkit.waiting import DEADLINE_SECONDS, until
from tests.contracts.kubernetes_harness import KubernetesHarness
from tests.kubernetes.fixtures import harness, shared_namespace

__all__ = ["harness", "shared_namespace"]


@pytest.fixture
async def workspace_id(harness: KubernetesHarness) -> WorkspaceId:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    return workspace_id


class Told:
    """The workspaces that `follow` has named so far."""

    def __init__(self, changes: KubernetesChanges) -> None:
        self.names: list[WorkspaceId] = []
        self._changes = changes

    async def collect(self) -> None:
        async for workspace_id in self._changes.follow():
            self.names.append(workspace_id)

    async def includes(self, workspace_id: WorkspaceId) -> None:
        async def included() -> bool:
            return workspace_id in self.names

        await until(included, "the change is noticed")
        self.names.clear()


@asynccontextmanager
async def following(changes: KubernetesChanges) -> AsyncIterator[Told]:
    told = Told(changes)
    collecting = asyncio.create_task(told.collect())
    try:
        yield told
    finally:
        collecting.cancel()
        await asyncio.wait([collecting])


@asynccontextmanager
async def relayed(
    harness: KubernetesHarness,
    directory: Path,
    watch_seconds: int,
) -> AsyncIterator[tuple[FaultRelay, Told]]:
    """Follow changes through a relay that a test can break."""
    configuration = json.loads(harness.namespace.cluster.kubeconfig.read_text())
    cluster = configuration["clusters"][0]["cluster"]
    async with FaultRelay.to(cluster["server"]) as relay:
        changed = {"server": f"https://127.0.0.1:{relay.port}", "insecure-skip-tls-verify": True}
        configuration["clusters"][0]["cluster"] = changed
        path = directory / "relayed.kubeconfig"
        path.write_text(json.dumps(configuration))
        async with (
            open_kubernetes(path, harness.namespace.name) as kubernetes,
            following(KubernetesChanges(kubernetes, harness.options, watch_seconds)) as told,
        ):
            # The first list is over as soon as a removal is told.
            await removal_is_told(harness, told)
            yield relay, told


async def removal_is_told(harness: KubernetesHarness, told: Told) -> None:
    """Remove claims until one is told: then the watch has begun."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not told.names:
            other = WorkspaceId(str(uuid.uuid4()))
            await harness.volumes.provision(other)
            await harness.volumes.remove(other)
    told.names.clear()


async def test_an_exited_or_removed_pod_and_a_removed_claim_are_told(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    async with following(KubernetesChanges(harness.kubernetes, harness.options)) as told:
        await removal_is_told(harness, told)
        request = InstanceRequest(workspace_id, IMAGE)
        await harness.instances.start(request, lambda _: None)
        assert workspace_id not in told.names
        harness.kill(workspace_id)
        await told.includes(workspace_id)
        await harness.instances.start(request, lambda _: None)
        told.names.clear()
        harness.api.delete(harness.pod_path(workspace_id))
        await told.includes(workspace_id)
        harness.api.delete(harness.claim_path(workspace_id))
        await told.includes(workspace_id)


async def test_what_happens_while_the_watch_is_cut_is_told_afterwards(
    harness: KubernetesHarness, workspace_id: WorkspaceId, tmp_path: Path
) -> None:
    async with relayed(harness, tmp_path, watch_seconds=60) as (relay, told):
        await relay.close()
        await harness.volumes.remove(workspace_id)
        assert workspace_id not in told.names
        await relay.open()
        await told.includes(workspace_id)


async def test_a_silent_watch_is_noticed(
    harness: KubernetesHarness,
    workspace_id: WorkspaceId,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that is dead without an end, as after a failed load balancer."""
    monkeypatch.setattr(transport, "WATCH_MARGIN_SECONDS", 1.0)
    async with relayed(harness, tmp_path, watch_seconds=2) as (relay, told):
        relay.go_silent()
        await harness.volumes.remove(workspace_id)
        assert workspace_id not in told.names
        relay.resume()
        await told.includes(workspace_id)


@pytest.mark.parametrize(
    "fault",
    [
        respond_with_status(410, "Expired", "too old"),
        end_watch(410, "Expired"),
        respond(429, retry_after=0),
        cut,
    ],
    ids=["refused as too old", "ended as too old", "overloaded", "cut"],
)
async def test_lists_tell_what_no_watch_can(
    harness: KubernetesHarness, workspace_id: WorkspaceId, tmp_path: Path, fault: Fault
) -> None:
    failed = Rule(fault, lambda exchange: exchange.is_watch, key=lambda exchange: exchange.kind)

    async def has_listed_claims() -> bool:
        return "persistentvolumeclaims" in failed.hits

    async with FaultProxy.to(harness.namespace.cluster) as proxy:
        proxy.rules.append(failed)
        path = proxy.write_kubeconfig(tmp_path / "proxied.kubeconfig")
        async with (
            open_kubernetes(path, harness.namespace.name) as kubernetes,
            following(KubernetesChanges(kubernetes, harness.options)) as told,
        ):
            await until(has_listed_claims, "a watch follows the first list")
            await harness.volumes.remove(workspace_id)
            await told.includes(workspace_id)
