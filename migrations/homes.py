"""Import homes that M1 kept in directories: upload, compare, and only then say that they are ours."""

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
# What is seen right before the row is written, which nobody else has changed since: only the archive.
ONLY_THE_ARCHIVE = Observation(ContainerFact.ABSENT, VolumeFact.ABSENT, ArchiveFact.PRESENT)


class CannotImport(Exception):
    """Why this home was not imported; the message is for a person."""


class HomeMissing(CannotImport):
    """The home directory recorded in M1's database does not exist."""


@dataclass(frozen=True)
class HomeImport:
    """M1's directories are only read. Run again at any time: what is imported is not imported twice."""

    directory: Path
    backend: Backend
    database: Database
    instances: Instances
    volumes: Volumes
    archives: Archives
    jobs: DirectoryJobs

    async def find_homes(self) -> list[M1Home]:
        """Every home that is still M1's."""
        if not (self.directory / "users").is_dir():
            raise CannotImport(
                f"There is no directory users/ in {self.directory}: name the directory below which M1 kept "
                "its homes, as users/{user}/workspaces/{id}/home."
            )
        async with self.database.transaction() as session:
            return await load_homes(session)

    async def import_home(self, home: M1Home, report: Report) -> StoredArchive:
        """Upload the home and compare, then make the archive the workspace's own; raise CannotImport."""
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
        """Make it a workspace of ours; if M1 had a home for it, the next look finds that it is lost."""
        async with self.database.transaction() as session:
            await move_home(session, home, self.backend)

    def _directory_of(self, home: M1Home) -> Path:
        place = PurePosixPath(home.home_store_key)
        if place.is_absolute() or ".." in place.parts:
            raise CannotImport(f"its path in M1's database is not one of M1: {home.home_store_key!r}.")
        directory = self.directory / place
        if not directory.is_dir():
            raise HomeMissing(f"there is no directory {directory}.")
        return directory

    async def _refuse_overwriting(self, home: M1Home) -> None:
        """A volume that exists is not ours to replace: this import makes none itself."""
        if await self.instances.observe(home.workspace_id) is not ContainerFact.ABSENT:
            container = container_name(home.workspace_id)
            raise CannotImport(
                f"its container {container} still exists: stop M1, remove the container, then run this again."
            )
        if await self.volumes.observe(home.workspace_id) is not VolumeFact.ABSENT:
            volume = volume_name(home.workspace_id)
            raise CannotImport(
                f"there is a volume {volume} already: see what it holds, remove it, then run this again."
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
            # It must not be taken for the home by the next run.
            await self.archives.remove(key)
            # An upload of an earlier run may be older than the home; one of just now may not.
            if not upload.skipped:
                raise CannotImport(
                    f"it changed while it was imported ({difference}): stop whatever uses {directory}, "
                    "then run this again."
                )

    async def _commit(self, home: M1Home, archive: StoredArchive) -> None:
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_snapshot(session, home.workspace_id, for_update=True)
            if row is None or not await move_home(session, home, self.backend):
                raise CannotImport("somebody has imported it, or begun to use the workspace, meanwhile.")
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
    """The same for every run, so that the next one goes on with the upload of one that was killed."""
    return str(uuid5(NAMESPACE_URL, f"codehub:m1-home:{workspace_id}"))


def _with_archive(row: Snapshot) -> Snapshot:
    archived = commit_archive(
        replace(row, archive_op_id=_operation_id(row.workspace_id), restore_marker=None)
    )
    if row.error_reason is not ErrorReason.DATA_LOST:
        return archived
    # An earlier version looked for the home where it never was; it is found now.
    conditions = replace(archived.conditions, volume_ready=NOT_OBSERVED)
    return replace(archived, conditions=conditions, error_reason=None, error_message=None, error_count=0)
