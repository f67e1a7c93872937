"""Kill a worker Pod around every activity that changes the cluster: it converges and no byte is lost.

The steps that all operations have change only rows; the matrices of the other backends include them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from codehub.domain.states import Operation
from testkit.deployment import Deployment, Servers
from testkit.kubernetes.cluster import Cluster
from tests.chaos.crash_matrix import crash_at_every_point
from tests.contracts.kubernetes_harness import Namespace, opened_namespace
from tests.kubernetes.deployment import open_kubernetes_deployment, wait_until_nothing_is_left
from tests.kubernetes.reachable_servers import reachable_servers
from tests.kubernetes.worker_pods import crashing_pod, load_image

AT_ONCE = 2


@pytest.fixture(scope="module")
async def shared_namespace(cluster: Cluster, servers: Servers) -> AsyncIterator[Namespace]:
    """Return a namespace whose Pods reach the servers."""
    load_image(cluster)
    with opened_namespace(cluster) as opened:
        async with reachable_servers(cluster.host_address, servers.stack.environment):
            yield opened


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "operation", [Operation.STARTING, Operation.ARCHIVING, Operation.RESTORING, Operation.DELETING]
)
async def test_a_killed_worker_loses_and_leaves_nothing_during(
    operation: Operation, servers: Servers, shared_namespace: Namespace, tmp_path: Path
) -> None:
    @asynccontextmanager
    async def opened(directory: Path, **extra: str) -> AsyncIterator[Deployment]:
        async with open_kubernetes_deployment(servers, shared_namespace, directory, **extra) as deployment:
            yield deployment
            await wait_until_nothing_is_left(deployment, shared_namespace.api)

    run_worker = partial(crashing_pod, shared_namespace)
    await crash_at_every_point(operation, opened, tmp_path, AT_ONCE, common_steps=(), run_worker=run_worker)
