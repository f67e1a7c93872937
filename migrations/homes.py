"""Import homes from M1's directories: upload, compare, and only then update the row."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from uuid import NAMESPACE_URL, uuid5

from codehub.adapters.local.directory_jobs import DirectoryJobs
from codehub.db.archives import mark_verified, record_archive
from codehub.db.events import EventKind, record_event
from codehub.db.m1_homes import Backend, M1Home, begin_import, load_homes, move_home
from codehub.db.session import Database
from codehub.db.snapshots import load_snapshot, save_observation
from codehub.domain.conditions import (
    NOT_OBSERVED,
    ArchiveFact,
    ContainerFact,
    Observation,
    Snapshot,
    VolumeFact,
    WorkspaceId,
)
from codehub.domain.failures import Failure
from codehub.domain.judge import judge
from codehub.domain.naming import archive_key, container_name, volume_name
from codehub.domain.states import ErrorReason
from codehub.domain.transitions import commit_archive
from codehub.ports import Archives, Instances, Report, StoredArchive, Volumes

ACTOR = "codehub migrate"
# What exists when the row is updated, under its lock.
ONLY_THE_ARCHIVE = Observation(ContainerFact.ABSENT, VolumeFact.ABSENT, ArchiveFact.PRESENT)


class CannotImport(Exception):
    """This home was not imported; the message is for people."""


class HomeMissing(CannotImport):
    """The home directory recorded in M1's database does not exist."""


@dataclass(frozen=True)
class HomeImport:
    """Imports the homes of M1. It only reads M1's directories, and can be run again at any time."""

    directory: Path
    backend: Backend
    database: Database
    instances: Instances
    volumes: Volumes
    archives: Archives
    jobs: DirectoryJobs

    async def find_homes(self) -> list[M1Home]:
        """Return the homes that have not been imported."""
        if not (self.directory / "users").is_dir():
            raise CannotImport(
                f"There is no directory users/ in {self.directory}: name the directory in which M1 keeps its "
                "homes as users/{user}/workspaces/{id}/home."
            )
        async with self.database.transaction() as session:
            return await load_homes(session)

    async def import_home(self, home: M1Home, report: Report) -> StoredArchive:
        """Upload the home, compare it, and make it the archive of the workspace; raise CannotImport."""
        try:
            directory = self._directory_of(home)
            await self._refuse_overwriting(home)
            archive = await self._upload(home, directory, report)
            # The upload may have taken hours.
            await self._refuse_overwriting(home)
        except (Failure, OSError) as error:
            raise CannotImport(str(error)) from error
        await self._commit(home, archive)
        return archive

    async def accept_without_home(self, home: M1Home) -> None:
        """Accept the workspace without its home; if M1 had one, the next observation reports it as lost."""
        async with self.database.transaction() as session:
            await move_home(session, home, self.backend)

    def _directory_of(self, home: M1Home) -> Path:
        path = PurePosixPath(home.home_store_key)
        if path.is_absolute() or ".." in path.parts:
            raise CannotImport(f"its path in M1's database is not one of M1: {home.home_store_key!r}.")
        directory = self.directory / path
        if not directory.is_dir():
            raise HomeMissing(f"there is no directory {directory}.")
        return directory

    async def _refuse_overwriting(self, home: M1Home) -> None:
        """Raise CannotImport if the workspace has a container or a volume: an import never replaces one."""
        if await self.instances.observe(home.workspace_id) is not ContainerFact.ABSENT:
            container = container_name(home.workspace_id)
            raise CannotImport(
                f"its container {container} still exists: stop M1, remove the container, then run this again."
            )
        if await self.volumes.observe(home.workspace_id) is not VolumeFact.ABSENT:
            volume = volume_name(home.workspace_id)
            raise CannotImport(
                f"there is already a volume {volume}: check what it holds, remove it, then run this again."
            )

    async def _upload(self, home: M1Home, directory: Path, report: Report) -> StoredArchive:
        operation_id = _operation_id(home.workspace_id)
        async with self.database.transaction() as session:
            await begin_import(session, home, operation_id)
        key = archive_key(home.workspace_id, operation_id)
        while True:
            upload = await self.jobs.archive(directory, key, report)
            difference = await self.jobs.find_difference(directory, key, report)
            if difference is None:
                return upload.archive
            # The next run must not take it for the home.
            await self.archives.remove(key)
            # The upload of an earlier run may be older than the home; a new one may not differ.
            if not upload.skipped:
                raise CannotImport(
                    f"it changed during the import ({difference}): stop the programs that use {directory}, "
                    "then run this again."
                )

    async def _commit(self, home: M1Home, archive: StoredArchive) -> None:
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_snapshot(session, home.workspace_id, for_update=True)
            if row is None or not await move_home(session, home, self.backend):
                raise CannotImport("it was imported, or the workspace was used, in the meantime.")
            await record_archive(
                session, archive.key, size_bytes=archive.size_bytes, sha256=archive.sha256, now=now
            )
            await mark_verified(session, archive.key, now)
            imported = judge(_with_archive(row), ONLY_THE_ARCHIVE, now)
            await save_observation(session, imported, now)
            await record_event(
                session,
                home.workspace_id,
                EventKind.PHASE_CHANGED,
                now,
                actor=ACTOR,
                phase=imported.phase,
                detail={"message": f"The home was imported from M1's {home.home_store_key}."},
            )


def _operation_id(workspace_id: WorkspaceId) -> str:
    """Return the same id in every run, so that a run continues the upload of one that was killed."""
    return str(uuid5(NAMESPACE_URL, f"codehub:m1-home:{workspace_id}"))


def _with_archive(row: Snapshot) -> Snapshot:
    archived = commit_archive(
        replace(row, archive_op_id=_operation_id(row.workspace_id), restore_marker=None)
    )
    if row.error_reason is not ErrorReason.DATA_LOST:
        return archived
    # An earlier version expected the home in the wrong place.
    conditions = replace(archived.conditions, volume_ready=NOT_OBSERVED)
    return replace(archived, conditions=conditions, error_reason=None, error_message=None, error_count=0)
