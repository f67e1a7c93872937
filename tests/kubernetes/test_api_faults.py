"""The life of workspaces while the API server is slow, overloaded, failing or cut off.

Each workspace has a trouble of its own: the proxy in front of the API server applies it to the requests about
that workspace. So all of them live at the same time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from codehub.adapters.kubernetes import client, following, transport
from codehub.db.events import EventKind, list_events
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, ErrorReason, Phase
from testkit.deployment import Deployment, Servers
from testkit.homes import KubernetesHomes
from testkit.kubernetes.fault_proxy import (
    Exchange,
    Fault,
    FaultProxy,
    Rule,
    begin_and_stall,
    cut,
    end_watch,
    lose_response,
    respond,
    respond_with_status,
    slow,
    stall,
)
from testkit.trees import Description
from testkit.waiting import until
from tests.contracts.kubernetes_harness import Namespace
from tests.kubernetes.deployment import open_kubernetes_deployment, purge, wait_until_nothing_is_left
from tests.kubernetes.fixtures import shared_namespace
from worker.__main__ import prepare

__all__ = ["shared_namespace"]

# Begins and ends with a stopped workspace.
LIFE = (DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED, DesiredState.STANDBY)
# A request without a response fails after this long, in place of half a minute. All lives share a machine.
RESPONSE_SECONDS = 10.0
EVENTS = 500
SETTINGS = {
    "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2",
    # All lives at once.
    "CODEHUB_WORKER_CONCURRENT_STARTS": "20",
    "CODEHUB_WORKER_CONCURRENT_ARCHIVES": "8",
    "CODEHUB_WORKER_CONCURRENT_RESTORES": "8",
}


def is_any(_: Exchange) -> bool:
    return True


def is_pod_change(exchange: Exchange) -> bool:
    """Whether it creates or removes a Pod, as every operation does."""
    return exchange.kind == "pods" and exchange.request.method in {"POST", "DELETE"}


def is_read(exchange: Exchange) -> bool:
    return not exchange.is_change and not exchange.is_watch


def is_watch(exchange: Exchange) -> bool:
    return exchange.is_watch


@dataclass(frozen=True)
class Trouble:
    """A fault, and which requests have it: so many in each operation, or so many of each kind of request."""

    fault: Fault
    selects: Callable[[Exchange], bool] = is_pod_change
    limit: int | None = 1
    each: bool = False
    # Whether not even an attempt may fail.
    unnoticed: bool = False

    def rule_for(self, workspace_id: WorkspaceId) -> Rule:
        return Rule(
            self.fault,
            lambda exchange: exchange.mentions(workspace_id) and self.selects(exchange),
            self.limit,
            (lambda exchange: exchange.target) if self.each else (lambda _: ""),
        )


TROUBLES = {
    "slow": Trouble(slow(0.5), is_any, limit=None, unnoticed=True),
    "429 with Retry-After": Trouble(respond(429, retry_after=1), is_any, each=True, unnoticed=True),
    "429 without Retry-After": Trouble(respond(429, "Too many requests"), is_any, each=True, unnoticed=True),
    "429 for long": Trouble(respond(429, retry_after=0), limit=transport.MAX_REFUSALS + 1),
    "500": Trouble(respond_with_status(500, "InternalError", "etcdserver: leader changed")),
    "503 of a load balancer": Trouble(respond(503, "no healthy upstream")),
    "503 to reads": Trouble(respond(503, "no healthy upstream"), is_read),
    "cut before the server": Trouble(cut),
    "lost response": Trouble(lose_response),
    "stalled": Trouble(stall),
    "watches refused as too old": Trouble(
        respond_with_status(410, "Expired", "too old"), is_watch, limit=None, unnoticed=True
    ),
    "watch ended as too old": Trouble(end_watch(410, "Expired"), is_watch, unnoticed=True),
    "watches cut": Trouble(cut, is_watch, limit=None, unnoticed=True),
    "watch silent": Trouble(begin_and_stall, is_watch, unnoticed=True),
}


@dataclass(frozen=True)
class Harness:
    deployment: Deployment
    namespace: Namespace
    proxy: FaultProxy

    @property
    def homes(self) -> KubernetesHomes:
        """Return the homes as they are, without the proxy."""
        return KubernetesHomes(self.namespace.cluster.kubeconfig, self.namespace.name)

    async def create(self) -> tuple[WorkspaceId, Description]:
        """Create a stopped workspace with a home that has every kind of entry."""
        workspace_id = await self.deployment.create(DesiredState.STANDBY)
        await self.deployment.wake(workspace_id)
        await self.deployment.wait_for_phase(workspace_id, Phase.STANDBY)
        await asyncio.to_thread(self.homes.fill, workspace_id)
        return workspace_id, self.homes.describe(workspace_id)

    async def failed_attempts(self, workspace_id: WorkspaceId) -> list[str]:
        async with self.deployment.database.transaction() as session:
            events = await list_events(session, workspace_id, before=None, limit=EVENTS)
        return [
            f"{event.operation}: {event.detail}" for event in events if event.kind == EventKind.ATTEMPT_FAILED
        ]


@pytest.fixture
async def harness(
    servers: Servers, shared_namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Harness]:
    monkeypatch.setattr(client, "RESPONSE_SECONDS", RESPONSE_SECONDS)
    monkeypatch.setattr(following, "WATCH_SECONDS", 5)
    monkeypatch.setattr(transport, "WATCH_MARGIN_SECONDS", 1.0)
    async with FaultProxy.to(shared_namespace.cluster) as proxy:
        kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
        settings = {**SETTINGS, "CODEHUB_KUBERNETES_KUBECONFIG": str(kubeconfig)}
        async with open_kubernetes_deployment(servers, shared_namespace, tmp_path, **settings) as deployment:
            await prepare(deployment.client, deployment.settings)
            async with deployment.worker():
                yield Harness(deployment, shared_namespace, proxy)


async def live(harness: Harness, trouble: Trouble) -> None:
    """Let a workspace start, stop, be archived, restored, started and purged with this trouble."""
    deployment = harness.deployment
    workspace_id, before = await harness.create()
    async with troubled(harness, workspace_id, trouble) as rule:
        for desired in LIFE:
            rule.hits.clear()
            await deployment.move_to(workspace_id, desired)
            assert rule.hits, f"nothing failed on the way to {desired}"
            snapshot = await deployment.look(workspace_id)
            assert (snapshot.error_reason, snapshot.error_count) == (None, 0)
        assert harness.homes.describe(workspace_id) == before
        await deployment.move_to(workspace_id, DesiredState.RUNNING)
        assert harness.homes.describe(workspace_id) == before
        rule.hits.clear()
        await purge(harness.deployment, workspace_id)
        assert rule.hits, "nothing failed on the way to DELETED"
        failed = await harness.failed_attempts(workspace_id)
        assert not (trouble.unnoticed and failed), failed


@asynccontextmanager
async def troubled(harness: Harness, workspace_id: WorkspaceId, trouble: Trouble) -> AsyncIterator[Rule]:
    rule = trouble.rule_for(workspace_id)
    harness.proxy.rules.append(rule)
    try:
        yield rule
    finally:
        harness.proxy.rules.remove(rule)


@pytest.mark.timeout(600)
async def test_a_workspace_lives_through_every_trouble_of_the_api_server(harness: Harness) -> None:
    lives = [live(harness, trouble) for trouble in TROUBLES.values()]
    results = await asyncio.gather(*lives, return_exceptions=True)
    failed = {name: result for name, result in zip(TROUBLES, results, strict=True) if result is not None}
    assert not failed, "\n".join(f"{name}: {error!r}" for name, error in failed.items())
    await wait_until_nothing_is_left(harness.deployment, harness.namespace.api)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (respond_with_status(403, "Forbidden", "exceeded quota: pods"), "refused: exceeded quota: pods"),
        (respond_with_status(500, "InternalError", "no leader"), "does not answer (no leader)"),
        (respond(429, "slow down", retry_after=0), "429 Too Many Requests"),
    ],
    ids=["a quota", "an error", "an overload"],
)
async def test_a_start_that_never_succeeds_says_why(harness: Harness, fault: Fault, words: str) -> None:
    workspace_id, before = await harness.create()
    async with troubled(harness, workspace_id, Trouble(fault, limit=None)):
        await harness.deployment.want(workspace_id, DesiredState.RUNNING)
        await harness.deployment.wake(workspace_id)

        async def has_failed() -> bool:
            return (await harness.deployment.look(workspace_id)).phase is Phase.ERROR

        await until(has_failed, "CodeHub gives up")
    snapshot = await harness.deployment.look(workspace_id)
    assert snapshot.error_reason is ErrorReason.RETRY_EXCEEDED
    assert words in (snapshot.error_message or "")
    assert harness.homes.describe(workspace_id) == before
    await purge(harness.deployment, workspace_id)
    await wait_until_nothing_is_left(harness.deployment, harness.namespace.api)
