"""Kill each server of the cluster in the middle of every operation: all converge and no byte is lost."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from testkit.deployment import Deployment, Servers
from testkit.kubernetes.cluster import Cluster
from tests.contracts.kubernetes_harness import Namespace
from tests.forwarded_stores import Gate
from tests.kubernetes.conftest import need_cluster
from tests.kubernetes.deployment import cordoned, open_kubernetes_deployment
from tests.kubernetes.fixtures import shared_namespace
from tests.kubernetes.held_operations import HELD_IMAGE, SETTINGS, HeldOperations, load_held_images

__all__ = ["shared_namespace"]

# All homes are on this node, and so is every Pod.
NODE, OTHER_NODE = "node1", "node2"
SERVERS = {
    "kube-apiserver": None,
    "etcd": None,
    "kube-controller-manager": None,
    "kube-scheduler": None,
    "kubelet": NODE,
    "containerd": NODE,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster of its own, because the tests break it."""
    need_cluster()
    cluster = Cluster(tmp_path_factory.mktemp("server-faults"))
    try:
        cluster.start(nodes=2)
        load_held_images(cluster)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
async def deployment(
    servers: Servers, shared_namespace: Namespace, gate: Gate, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    directory = tmp_path_factory.mktemp("deployment")
    with cordoned(shared_namespace.api, OTHER_NODE):
        async with open_kubernetes_deployment(
            servers, shared_namespace, directory, HELD_IMAGE, gate, **SETTINGS
        ) as deployment:
            yield deployment


@pytest.fixture(scope="module")
def worker(deployment: Deployment) -> Iterator[subprocess.Popen[bytes]]:
    with deployment.worker_process() as process:
        yield process


@pytest.mark.timeout(600)
@pytest.mark.parametrize("server", SERVERS)
async def test_every_operation_survives_the_loss_of(
    server: str,
    cluster: Cluster,
    shared_namespace: Namespace,
    deployment: Deployment,
    worker: "subprocess.Popen[bytes]",
    gate: Gate,
) -> None:
    operations = HeldOperations(deployment, shared_namespace, gate)
    await operations.prepare()
    with operations.held():
        await operations.begin()
        async with killed(cluster, server, SERVERS[server]):
            await operations.require_unfinished()
            await operations.add_new()
    await operations.wait_until_complete()
    await operations.check_homes()
    await operations.purge()
    assert worker.poll() is None, "the worker has ended"


@asynccontextmanager
async def killed(cluster: Cluster, server: str, node: str | None) -> AsyncIterator[None]:
    """Kill a server for the length of a block, without stopping the archive store of this process."""
    await asyncio.to_thread(cluster.kill, server, node)
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start_server, server, node)
