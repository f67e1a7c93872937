"""Storage jobs as throw-away Pods that get their request from a Secret and end with their caller."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus
from secrets import token_hex

import httpx2
from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.claims import absent_claim, mark_claim
from codehub.adapters.kubernetes.client import (
    Kubernetes,
    status_of,
    translate_change_errors,
    uid_of,
)
from codehub.adapters.kubernetes.jobs.attendance import Attendance
from codehub.adapters.kubernetes.jobs.leftovers import (
    AbandonedJobs,
    end_leftover_job,
    find_job,
    remove_job,
)
from codehub.adapters.kubernetes.jobs.manifest import (
    DATA,
    LEASE_SECONDS,
    Job,
    job_pod,
    request_secret,
    secret_name_of,
)
from codehub.adapters.kubernetes.jobs.outcome import check_outcome
from codehub.adapters.kubernetes.options import USER_ID, KubernetesOptions
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import job_name
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput, job_request
from codehub.ports import UNRECORDED, ArchiveStore, ExpectedArchive, Report, StoredArchive


class KubernetesStorageJobs:
    """Runs one job per workspace at a time: names of Pods are unique."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        options: KubernetesOptions,
        store: ArchiveStore,
        *,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._kubernetes = kubernetes
        self._options = options
        self._store = store
        self._lease_seconds = lease_seconds
        self._abandoned = AbandonedJobs(kubernetes, options)

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("archive", workspace_id, key, report)
        return output.stored_archive(key)

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        await KubernetesVolumes(self._kubernetes, self._options).provision(workspace_id)
        await self._run("restore", workspace_id, key, report, expected)

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("create-empty", workspace_id, key, report)
        return output.stored_archive(key)

    async def remove_abandoned(self) -> int:
        with translate_change_errors():
            return await self._abandoned.remove()

    async def _run(
        self,
        operation: str,
        workspace_id: WorkspaceId,
        key: str,
        report: Report,
        expected: ExpectedArchive = UNRECORDED,
    ) -> JobOutput:
        output = JobOutput(report)
        # Everything in a home belongs to the user of the workspaces, except for the root of some volumes.
        request = job_request(self._store, key, DATA, expected, owner=USER_ID)
        secret_name = f"{job_name(workspace_id)}-{token_hex(8)}"
        job = Job(operation, workspace_id, request, secret_name, self._lease_seconds)
        with translate_change_errors():
            async with self._created(job) as pod:
                ended = await Attendance(self._kubernetes, self._options, pod, output).attend()
        check_outcome(ended, output)
        return output

    @contextlib.asynccontextmanager
    async def _created(self, job: Job) -> AsyncIterator[Pod]:
        try:
            yield await self._create(job)
        finally:
            await asyncio.shield(self._remove(job))

    async def _create(self, job: Job) -> Pod:
        """Create the Pod, then its Secret: a crash in between leaves no credentials, only a waiting Pod."""
        claim_uid = await self._mark_claim(job)
        pod = await self._create_pod(job)
        # A removal that has not seen the Pod may have begun after the first mark.
        if await self._mark_claim(job) != claim_uid:
            raise absent_claim()
        await self._kubernetes.client.create(request_secret(job, uid_of(pod), self._options))
        return pod

    async def _mark_claim(self, job: Job) -> str | None:
        if not job.needs_home:
            return None
        return uid_of(await mark_claim(self._kubernetes, self._options, job.workspace_id))

    async def _create_pod(self, job: Job) -> Pod:
        pod = job_pod(job, self._kubernetes.now().isoformat(), self._options)
        try:
            return await self._kubernetes.client.create(pod)
        except httpx2.HTTPStatusError as error:
            if status_of(error) != HTTPStatus.CONFLICT:
                raise
        if not await end_leftover_job(self._kubernetes, self._options, job.workspace_id):
            raise Transient(
                ErrorReason.ACTION_FAILED, "Another job is still using this volume; try again later."
            )
        return await self._kubernetes.client.create(pod)

    async def _remove(self, job: Job) -> None:
        """Remove the Pod of this run. The API may have created it although its response was lost."""
        pod = await find_job(self._kubernetes, self._options, job.workspace_id)
        if pod is not None and secret_name_of(pod) == job.secret_name:
            await remove_job(self._kubernetes, pod)
