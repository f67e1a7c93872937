"""What a person decides about a broken or a deleted workspace: recover it, or take its deletion back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.archive_views import OtherArchive, list_other_archives
from codehub.db.archives import is_available, is_collected, unmark_orphans
from codehub.db.events import EventKind, record_event
from codehub.db.recoveries import (
    LockedSnapshot,
    RecoverRequest,
    lock_snapshot,
    set_recover_request,
    set_undeleted,
)
from codehub.db.session import Database
from codehub.db.views import WorkspaceView
from codehub.domain import naming
from codehub.domain.conditions import Snapshot, WorkspaceId
from codehub.domain.judge import conclude
from codehub.domain.limits import RunningLimits
from codehub.domain.recovery import RecoverChoice, can_restore_current, choices, undelete
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.errors import InvalidState, OperationInProgress, WorkspaceNotFound
from codehub.services.workspaces import reserve_slot
from codehub.words import CHOICES

# What PostgreSQL tells apart.
NEXT_MOMENT = timedelta(microseconds=1)
OLDEST = datetime.min.replace(tzinfo=UTC)


async def request_recovery(
    database: Database,
    workspace_id: WorkspaceId,
    choice: RecoverChoice | None,
    *,
    archive: UUID | None = None,
    actor: str,
    limits: RunningLimits,
    now: datetime,
) -> RecoverChoice:
    """Write how to leave the error; its workflow carries it out on a fresh look. Tell what was chosen.

    `archive` names the archive to go back to, by its `archive_op_id`. A second request replaces the first
    until that has been carried out: the latest word counts.
    """
    async with database.transaction() as session:
        locked = await _lock(session, workspace_id)
        if locked.snapshot.deleted and locked.snapshot.phase is Phase.DELETED:
            raise WorkspaceNotFound(workspace_id)
        _check_idle(locked)
        # An error that was carried over from an older installation has not been judged yet.
        snapshot = conclude(locked.snapshot, now)
        others = await list_other_archives(session, workspace_id)
        chosen = _choose(snapshot, choice, others)
        archive_key = await _find_archive(session, snapshot, chosen, archive)
        if snapshot.desired_state is DesiredState.RUNNING:
            # It has its place, in an error too; but limits that were lowered hold for a new start.
            await reserve_slot(session, locked.owner_user_id, limits, besides=workspace_id)
        request = RecoverRequest(chosen, _moment_after(locked.last_recovery_at, now), archive_key)
        await set_recover_request(session, workspace_id, request, now)
        await record_event(
            session,
            workspace_id,
            EventKind.RECOVERY_REQUESTED,
            now,
            actor=actor,
            phase=snapshot.phase,
            error_reason=snapshot.error_reason,
            detail={"choice": chosen} | ({"archive": archive_key} if archive_key else {}),
        )
    return chosen


@dataclass(frozen=True)
class ArchiveToRestore:
    """An archive that `restore_archive` accepts; the current one is taken if none is named."""

    archive_op_id: UUID
    created_at: datetime | None
    size_bytes: int | None
    verified_at: datetime | None
    current: bool = False


def choices_of(view: WorkspaceView) -> tuple[RecoverChoice, ...]:
    """What *recover* would accept, as far as can be told from what was last seen."""
    return choices(_snapshot_of(view), has_other_archives=bool(view.other_archives))


def archives_to_restore(view: WorkspaceView) -> list[ArchiveToRestore]:
    """What *recover* may go back to, newest first; the current one only if it is neither gone nor damaged."""
    others = [
        ArchiveToRestore(each.archive_op_id, each.created_at, each.size_bytes, each.verified_at)
        for each in view.other_archives
    ]
    name = naming.parse_archive_key(view.archive_key or "")
    if name is None or not can_restore_current(_snapshot_of(view)):
        return others
    current = ArchiveToRestore(
        UUID(name.archive_op_id), view.archived_at, view.archive_size_bytes, view.archive_verified_at, True
    )
    # One without a time is from before times were recorded.
    return sorted([current, *others], key=lambda each: each.created_at or OLDEST, reverse=True)


def _snapshot_of(view: WorkspaceView) -> Snapshot:
    return Snapshot(
        workspace_id=view.workspace_id,
        desired_state=view.desired_state,
        conditions=view.conditions,
        archive_key=view.archive_key,
        error_reason=view.error_reason,
        purge=view.purge,
    )


async def undelete_workspace(
    database: Database, workspace_id: WorkspaceId, *, actor: str, now: datetime
) -> None:
    """Take a deletion back while what it left can still be had; it then goes to ARCHIVED."""
    async with database.transaction() as session:
        locked = await _lock(session, workspace_id)
        _check_idle(locked)
        snapshot = locked.snapshot
        _check_may_come_back(snapshot)
        await _keep_archive(session, snapshot)
        desired = undelete(snapshot).desired_state
        await set_undeleted(session, workspace_id, desired, now)
        await record_event(
            session,
            workspace_id,
            EventKind.UNDELETED,
            now,
            actor=actor,
            phase=snapshot.phase,
            detail={"from": snapshot.desired_state, "to": desired},
        )


async def _lock(session: AsyncSession, workspace_id: WorkspaceId) -> LockedSnapshot:
    locked = await lock_snapshot(session, workspace_id)
    if locked is None:
        raise WorkspaceNotFound(workspace_id)
    return locked


def _check_idle(locked: LockedSnapshot) -> None:
    if locked.snapshot.operation is not Operation.NONE:
        raise OperationInProgress(locked.snapshot.operation, locked.op_started_at)


def _choose(
    snapshot: Snapshot, choice: RecoverChoice | None, others: Sequence[OtherArchive]
) -> RecoverChoice:
    allowed = choices(snapshot, has_other_archives=bool(others))
    if not allowed:
        raise InvalidState(snapshot.phase, "There is no error to recover from.")
    # Where files are lost nobody decides for their owner, not even to look again.
    if choice is None and snapshot.error_reason is ErrorReason.DATA_LOST:
        message = f"Files are missing, so say how to recover: {_explain(allowed)}."
        raise InvalidState(snapshot.phase, message, allowed)
    chosen = choice or RecoverChoice.RETRY
    if chosen not in allowed:
        message = f"`{chosen}` is not possible here; choose {_explain(allowed)}."
        raise InvalidState(snapshot.phase, message, allowed)
    return chosen


async def _find_archive(
    session: AsyncSession, snapshot: Snapshot, choice: RecoverChoice, archive: UUID | None
) -> str | None:
    """The key of the archive that was named; None for the current one."""
    if choice is not RecoverChoice.RESTORE_ARCHIVE:
        return None
    current = naming.parse_archive_key(snapshot.archive_key or "")
    if archive is None or (current is not None and current.archive_op_id == str(archive)):
        if not can_restore_current(snapshot):
            message = "The last archive cannot be restored; name another one from `recover.archives`."
            raise InvalidState(snapshot.phase, message)
        return None
    key = naming.archive_key(snapshot.workspace_id, str(archive))
    if not await is_available(session, key):
        message = "This workspace has no such archive; name one from `recover.archives`."
        raise InvalidState(snapshot.phase, message)
    return key


def _explain(allowed: Sequence[RecoverChoice]) -> str:
    return " or ".join(f"`{each}` ({CHOICES[each].meaning})" for each in allowed)


def _moment_after(last: datetime | None, now: datetime) -> datetime:
    """A moment names its request, so no two have the same, whatever the clocks say."""
    return now if last is None else max(now, last + NEXT_MOMENT)


def _check_may_come_back(snapshot: Snapshot) -> None:
    if not snapshot.deleted:
        raise InvalidState(snapshot.phase, "The workspace is not deleted.")
    if snapshot.purge:
        message = "The workspace was deleted without a last archive, so it cannot come back."
        raise InvalidState(snapshot.phase, message)
    if snapshot.archive_key is None and snapshot.phase is Phase.DELETED:
        raise InvalidState(snapshot.phase, "The workspace left no archive, so there is nothing to come back.")


async def _keep_archive(session: AsyncSession, snapshot: Snapshot) -> None:
    """The row's lock, which the collector takes too, decides who was first: it or we."""
    key = snapshot.archive_key
    if key is None:
        return
    if await is_collected(session, key):
        raise InvalidState(snapshot.phase, "The workspace's archive has been removed; it cannot come back.")
    # Should it be deleted again, the grace of its archive starts anew.
    await unmark_orphans(session, {key})
