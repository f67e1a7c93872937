"""Removes Pods, also those whose node is lost."""

from datetime import timedelta
from http import HTTPStatus

import httpx2
from lightkube.resources.core_v1 import Node, Pod

from codehub.adapters.kubernetes.client import Kubernetes, is_absence, metadata_of, status_of, uid_of
from codehub.adapters.kubernetes.following import wait_until_gone
from codehub.adapters.kubernetes.options import Timeouts
from codehub.domain.failures import MAX_RETRY, Transient
from codehub.domain.states import ErrorReason

# A kubelet that responds removes a Pod within this time after its processes have ended.
CLEANUP_SECONDS = 10.0
LEAST_PATIENCE_SECONDS = 60.0


def patience_of(force_seconds: float) -> float:
    """Return how long one attempt waits for a Pod, so that the last one can still remove it by force."""
    return max(LEAST_PATIENCE_SECONDS, force_seconds / MAX_RETRY + CLEANUP_SECONDS)


async def remove_pod(kubernetes: Kubernetes, pod: Pod, timeouts: Timeouts, *, grace_seconds: int) -> None:
    """Ask its processes to exit, kill them after the grace, and return when the Pod is gone.

    Only its kubelet can tell that. If it does not, raise Transient(ACTION_FAILED); after a set time, or when
    the node does not exist any more, remove the Pod by force.
    """
    ending = metadata_of(pod).deletionTimestamp
    if ending is None or grace_seconds == 0:
        await _delete(kubernetes, pod, grace_seconds)
        patience = grace_seconds + CLEANUP_SECONDS
    else:
        # An earlier call has waited already. The API sets the time to the end of the grace.
        patience = (ending - kubernetes.now()).total_seconds() + CLEANUP_SECONDS
    if await wait_until_gone(kubernetes, Pod, pod, max(0.0, patience)):
        return
    if not await _is_lost(kubernetes, pod, timeouts):
        remaining = max(0.0, timeouts.removal - CLEANUP_SECONDS)
        if await wait_until_gone(kubernetes, Pod, pod, remaining):
            return
    if not await _is_lost(kubernetes, pod, timeouts):
        raise _still_terminating(pod, timeouts)
    await _delete(kubernetes, pod, grace_seconds=0)
    if not await wait_until_gone(kubernetes, Pod, pod, CLEANUP_SECONDS):
        raise _still_terminating(pod, timeouts)


async def _delete(kubernetes: Kubernetes, pod: Pod, grace_seconds: int) -> None:
    name = metadata_of(pod).name or ""
    await kubernetes.delete(Pod, name, uid=uid_of(pod), grace_seconds=grace_seconds)


async def _is_lost(kubernetes: Kubernetes, pod: Pod, timeouts: Timeouts) -> bool:
    """Return whether nobody will ever report the end of this Pod's processes."""
    found = await kubernetes.find(Pod, metadata_of(pod).name or "")
    if found is None or uid_of(found) != uid_of(pod):
        return True
    # The API sets it to the end of the grace.
    ending = metadata_of(found).deletionTimestamp
    if ending is not None and kubernetes.now() - ending > timedelta(seconds=timeouts.force):
        return True
    node = found.spec.nodeName if found.spec else None
    return node is not None and not await _node_exists(kubernetes, node)


async def _node_exists(kubernetes: Kubernetes, node: str) -> bool:
    """Return False only if the API says that there is no such node."""
    try:
        await kubernetes.client.get(Node, node)
    except httpx2.HTTPStatusError as error:
        if is_absence(error):
            return False
        # CodeHub may not have the right to read nodes; then only time tells.
        if status_of(error) != HTTPStatus.FORBIDDEN:
            raise
    return True


def _still_terminating(pod: Pod, timeouts: Timeouts) -> Transient:
    node = (pod.spec.nodeName if pod.spec else None) or "its node"
    return Transient(
        ErrorReason.ACTION_FAILED,
        f"The instance does not end: {node} does not report it. It is removed by force "
        f"{timeouts.force:.0f} s after the request, or when the node is removed from the cluster.",
    )
