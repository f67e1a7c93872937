"""The namespace of a stage: create it, evict Pods from it, and remove it with everything in it."""

import asyncio
from http import HTTPStatus

from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod, PodEviction, ServiceAccount

from codehub.adapters.kubernetes.client import Kubernetes, ignore_statuses, metadata_of, uid_of

POLL_SECONDS = 0.5
SETUP_SECONDS = 60.0
# The only one that the test cluster knows; 1.25 and newer know only v1.
EVICTION_VERSION = "policy/v1beta1"


async def create_namespace(kubernetes: Kubernetes) -> None:
    """Create the namespace and return when it can have Pods."""
    await kubernetes.client.create(Namespace(metadata=ObjectMeta(name=kubernetes.namespace)))
    async with asyncio.timeout(SETUP_SECONDS):
        # Without it, the API server refuses all Pods.
        while await kubernetes.find(ServiceAccount, "default") is None:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)


async def remove_namespace(kubernetes: Kubernetes) -> None:
    """Remove the namespace and return when everything in it is gone."""
    async for pod in kubernetes.client.list(Pod):
        # A namespace goes only when its Pods are gone, and those would be given time to end.
        await kubernetes.delete(Pod, metadata_of(pod).name or "", uid=uid_of(pod), grace_seconds=0)
    with ignore_statuses(HTTPStatus.NOT_FOUND):
        await kubernetes.client.delete(Namespace, kubernetes.namespace)
        while True:
            await kubernetes.client.get(Namespace, kubernetes.namespace)
            await asyncio.sleep(POLL_SECONDS)


async def evict(kubernetes: Kubernetes, pod: str) -> None:
    """Evict a Pod as `kubectl drain` does; succeed if it is gone."""
    eviction = PodEviction(apiVersion=EVICTION_VERSION, metadata=ObjectMeta(name=pod))
    with ignore_statuses(HTTPStatus.NOT_FOUND):
        await kubernetes.client.create(eviction, pod)
