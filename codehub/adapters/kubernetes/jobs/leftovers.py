"""Removes the Pod of a job: of an own one at its end, and of one whose caller died."""

import asyncio
import contextlib
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
    if (secret_name := secret_name_of(pod)) is not None:
        with ignore_statuses(HTTPStatus.NOT_FOUND):
            await kubernetes.client.delete(Secret, secret_name)
    name, uid = name_of(pod), uid_of(pod)
    await kubernetes.delete(Pod, name, uid=uid)
    while not await wait_until_gone(kubernetes, Pod, pod, CHECK_SECONDS):
        found = await kubernetes.find(Pod, name)
        if found is not None and uid_of(found) == uid and _is_overdue(kubernetes, found):
            await kubernetes.delete(Pod, name, uid=uid, grace_seconds=0)


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
