"""Storage jobs on the homes of this machine."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from codehub.adapters.local.job_processes import run_job
from codehub.adapters.local.locks import exclusive
from codehub.adapters.local.root import LocalRoot, translated
from codehub.adapters.local.volumes import make_volume
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import parse_workspace_id
from codehub.domain.states import ErrorReason
from codehub.job_output import JobOutput
from codehub.job_request import job_request
from codehub.ports import UNRECORDED, ArchiveStore, ExpectedArchive, Report, StoredArchive


class LocalStorageJobs:
    """One job per workspace at a time: its process itself holds the lock, so not even our death frees it."""

    def __init__(self, root: Path, store: ArchiveStore, *, grace_seconds: float = 10.0) -> None:
        self._root = LocalRoot.at(root)
        self._store = store
        self._grace_seconds = grace_seconds

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("archive", workspace_id, key, report)
        return output.stored_as(key)

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        await self._root.run(lambda: make_volume(self._root.volume(workspace_id)))
        await self._run("restore", workspace_id, key, report, expected)

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("create-empty", workspace_id, key, report)
        return output.stored_as(key)

    async def _run(
        self,
        operation: str,
        workspace_id: WorkspaceId,
        key: str,
        report: Report,
        expected: ExpectedArchive = UNRECORDED,
    ) -> JobOutput:
        await self._root.run(lambda: None)
        request = job_request(self._store, key, str(self._root.volume(workspace_id)), expected)
        with self._locked(workspace_id) as lock:
            return await run_job(
                operation, request, report, inherited=(lock,), grace_seconds=self._grace_seconds
            )

    @contextlib.contextmanager
    def _locked(self, workspace_id: WorkspaceId) -> Iterator[int]:
        with translated(), contextlib.ExitStack() as stack:
            try:
                lock = self._root.locks / f"{parse_workspace_id(workspace_id)}.job"
                descriptor = stack.enter_context(exclusive(lock))
            except BlockingIOError as error:
                raise Transient(
                    ErrorReason.ACTION_FAILED, "Another job still works on this volume; try again later."
                ) from error
            yield descriptor
