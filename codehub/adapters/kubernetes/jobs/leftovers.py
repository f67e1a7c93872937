"""Removes the Pod of a job: of an own one at its end, and of one whose caller died."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

from lightkube.resources.core_v1 import Pod, Secret

from codehub.adapters.kubernetes.client import Kubernetes, ignore_statuses, metadata_of, uid_of
from codehub.adapters.kubernetes.following import wait_until_gone
from codehub.adapters.kubernetes.jobs.manifest import (
    CLEANUP_SECONDS,
    LEASE_ANNOTATION,
    RENEW_SECONDS,
    lease_seconds_of,
    secret_name_of,
)
from codehub.adapters.kubernetes.jobs.outcome import has_ended
from codehub.adapters.kubernetes.options import Component, KubernetesOptions
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import job_name
from codehub.domain.states import ErrorReason

POLL_SECONDS = 0.5
CHECK_SECONDS = 5.0
# A live caller has renewed the lease by then, also one with a slow connection.
ABANDONED_SECONDS = 4 * RENEW_SECONDS


async def end_leftover_job(
    kubernetes: Kubernetes, options: KubernetesOptions, workspace_id: WorkspaceId
) -> bool:
    """Remove a job that has ended or whose caller died. Return False if a job is still active."""
    pod = await find_job(kubernetes, options, workspace_id)
    if pod is None:
        return True
    if not _is_ending(pod) and await _is_renewed(kubernetes, pod):
        return False
    await remove_job(kubernetes, pod)
    return True


async def find_job(
    kubernetes: Kubernetes, options: KubernetesOptions, workspace_id: WorkspaceId
) -> Pod | None:
    """Return the Pod of the workspace's job. Raise Transient if the name belongs to somebody else's Pod."""
    pod = await kubernetes.find(Pod, job_name(workspace_id))
    if pod is not None and options.workspace_of(pod.metadata, Component.STORAGE_JOB) != workspace_id:
        raise Transient(
            ErrorReason.ACTION_FAILED,
            f"The Pod {job_name(workspace_id)} does not belong to this installation of CodeHub. Remove it.",
        )
    return pod


async def remove_job(kubernetes: Kubernetes, pod: Pod) -> None:
    """Remove the credentials, then the Pod, and return when it is gone.

    If no kubelet reports its end, the Pod is removed by force, but only after its job has ended by itself:
    nobody renews its lease any more.
    """
    await _delete_job(kubernetes, pod)
    while not await wait_until_gone(kubernetes, Pod, pod, CHECK_SECONDS):
        found = await kubernetes.find(Pod, name_of(pod))
        if found is not None and uid_of(found) == uid_of(pod) and _is_overdue(kubernetes, found):
            await kubernetes.delete(Pod, name_of(pod), uid=uid_of(pod), grace_seconds=0)


async def _delete_job(kubernetes: Kubernetes, pod: Pod) -> None:
    """Delete the credentials, then the Pod; by force if nobody has reported its end in time."""
    if (secret_name := secret_name_of(pod)) is not None:
        with ignore_statuses(HTTPStatus.NOT_FOUND):
            await kubernetes.client.delete(Secret, secret_name)
    grace_seconds = 0 if _is_overdue(kubernetes, pod) else None
    await kubernetes.delete(Pod, name_of(pod), uid=uid_of(pod), grace_seconds=grace_seconds)


class AbandonedJobs:
    """Finds jobs whose caller has died and no next one takes their place: their lease stays as it was.

    Only changes count, because clocks may differ; so it takes two calls, and a new process starts anew.
    """

    def __init__(
        self,
        kubernetes: Kubernetes,
        options: KubernetesOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kubernetes = kubernetes
        self._options = options
        self._clock = clock
        # By uid of a Pod: its lease, and when that was first seen.
        self._leases: dict[str, tuple[str | None, float]] = {}

    async def remove(self) -> int:
        """Remove the credentials and Pods of abandoned jobs; return how many. This costs one list."""
        listed = self._kubernetes.client.list(Pod, labels=self._options.selector(Component.STORAGE_JOB))
        pods = [pod async for pod in listed]
        self._leases = {uid_of(pod): self._first_seen(pod) for pod in pods}
        abandoned = [pod for pod in pods if self._is_abandoned(pod)]
        for pod in abandoned:
            await _delete_job(self._kubernetes, pod)
        return len(abandoned)

    def _first_seen(self, pod: Pod) -> tuple[str | None, float]:
        earlier = self._leases.get(uid_of(pod))
        return earlier if earlier and earlier[0] == lease_of(pod) else (lease_of(pod), self._clock())

    def _is_abandoned(self, pod: Pod) -> bool:
        """Return whether the job has ended by itself, because nobody has renewed its lease for so long."""
        _, since = self._leases[uid_of(pod)]
        return self._clock() - since > lease_seconds_of(pod) + CLEANUP_SECONDS


def name_of(pod: Pod) -> str:
    return metadata_of(pod).name or ""


def lease_of(pod: Pod) -> str | None:
    return (metadata_of(pod).annotations or {}).get(LEASE_ANNOTATION)


def _is_ending(pod: Pod) -> bool:
    return has_ended(pod) or metadata_of(pod).deletionTimestamp is not None


def _is_overdue(kubernetes: Kubernetes, pod: Pod) -> bool:
    # The time of the deletion already includes the grace period.
    deleted_at = metadata_of(pod).deletionTimestamp
    patience = timedelta(seconds=lease_seconds_of(pod) + CLEANUP_SECONDS)
    return deleted_at is not None and kubernetes.now() - deleted_at > patience


async def _is_renewed(kubernetes: Kubernetes, pod: Pod) -> bool:
    """Return whether the caller of this job is alive. Only changes count: clocks may differ."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ABANDONED_SECONDS):
            return await _changes(kubernetes, pod)
    return False


async def _changes(kubernetes: Kubernetes, pod: Pod) -> bool:
    """Return True when the lease is renewed, and False when the job has ended."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        found = await kubernetes.find(Pod, name_of(pod))
        if found is None or uid_of(found) != uid_of(pod) or _is_ending(found):
            return False
        if lease_of(found) != lease_of(pod):
            return True
