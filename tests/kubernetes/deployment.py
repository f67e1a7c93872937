"""A small CodeHub whose workspaces are Pods, on real servers and the test cluster."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from codehub.adapters.kubernetes.options import PROJECT_LABEL
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Phase
from testkit.deployment import Deployment, Servers, open_deployment
from testkit.fakes import IMAGE
from testkit.kubernetes.api import Api
from testkit.kubernetes.settings import backend_settings
from testkit.waiting import until
from tests.contracts.kubernetes_harness import Namespace
from tests.forwarded_stores import Gate, forwarded

# Kinds of which an installation without workspaces has none.
KINDS = ("pods", "persistentvolumeclaims", "secrets")


@asynccontextmanager
async def open_kubernetes_deployment(
    servers: Servers,
    namespace: Namespace,
    directory: Path,
    image: str = IMAGE,
    gate: Gate | None = None,
    /,
    **extra: str,
) -> AsyncIterator[Deployment]:
    """Open a deployment in this namespace; with the namespace goes what a failed test left.

    The gate can hold the connections of storage jobs to the archive store.
    """
    store = servers.stack.environment["CODEHUB_S3_ENDPOINT_URL"]
    async with forwarded(namespace.cluster.host_address, store, gate) as (store_url, _):
        backend = {
            **backend_settings(namespace.cluster.kubeconfig, namespace.name, image),
            "CODEHUB_S3_ENDPOINT_URL": store_url,
            **extra,
        }
        async with open_deployment(servers, directory, **backend) as deployment:
            yield deployment


def objects_of(deployment: Deployment, api: Api) -> list[str]:
    """Return the Pods, claims and Secrets of the deployment."""
    kubernetes = deployment.settings.kubernetes
    selected = f"labelSelector={PROJECT_LABEL}={kubernetes.project}"
    return [
        f"{kind}/{each['metadata']['name']}"
        for kind in KINDS
        for each in api.list(f"/api/v1/namespaces/{kubernetes.namespace}/{kind}?{selected}")
    ]


async def purge(deployment: Deployment, *workspace_ids: WorkspaceId) -> None:
    """Delete workspaces without a last archive, also those with an error, and wait until they are gone."""
    for workspace_id in workspace_ids:
        await deployment.delete(workspace_id, purge=True)
        await deployment.wake(workspace_id)
    for workspace_id in workspace_ids:

        async def is_deleted(workspace_id: WorkspaceId = workspace_id) -> bool:
            return (await deployment.look(workspace_id)).phase is Phase.DELETED

        await until(is_deleted, f"{workspace_id} is deleted")


async def wait_until_nothing_is_left(deployment: Deployment, api: Api) -> None:
    """Wait for the garbage collector, which removes Secrets some time after their Pods."""

    async def is_gone() -> bool:
        return not objects_of(deployment, api)

    await until(is_gone, f"nothing is left of {objects_of(deployment, api)}")


@contextmanager
def cordoned(api: Api, node: str) -> Iterator[None]:
    """Keep new Pods away from a node."""
    path = f"/api/v1/nodes/{node}"
    api.patch(path, {"spec": {"unschedulable": True}})
    try:
        yield
    finally:
        api.patch(path, {"spec": {"unschedulable": None}})
