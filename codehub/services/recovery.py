"""Recovering a workspace from an error."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.archive_views import OtherArchive, list_other_archives
from codehub.db.archives import is_available
from codehub.db.events import EventKind
from codehub.db.recoveries import LockedSnapshot, RecoverRequest, lock_snapshot, set_recover_request
from codehub.db.session import Database
from codehub.db.views import WorkspaceView
from codehub.domain import naming
from codehub.domain.conditions import Snapshot, WorkspaceId
from codehub.domain.judge import conclude
from codehub.domain.recovery import RecoverChoice, can_restore_current, choices
from codehub.domain.states import DesiredState, ErrorReason, Phase
from codehub.services.audit import Action, Actor, record
from codehub.services.errors import InvalidState, WorkspaceNotFound
from codehub.services.requests import (
    RequestContext,
    record_request,
    require_enabled_owner,
    require_idle,
    reserve_slot,
)
from codehub.words import CHOICES

# The resolution of PostgreSQL's timestamps.
NEXT_MOMENT = timedelta(microseconds=1)
OLDEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class ArchiveToRestore:
    """An archive that `restore_archive` accepts; without a name it takes the current one."""

    archive_op_id: UUID
    created_at: datetime | None
    size_bytes: int | None
    verified_at: datetime | None
    current: bool = False


async def request_recovery(
    database: Database,
    workspace_id: WorkspaceId,
    choice: RecoverChoice | None,
    *,
    archive: UUID | None = None,
    context: RequestContext,
) -> RecoverChoice:
    """Store how to leave the error, and return it; the workflow carries it out on a fresh observation.

    `archive` is the `archive_op_id` of the archive to restore. A later request replaces one that has not been
    carried out.
    """
    async with database.transaction() as session:
        locked = await _lock(session, workspace_id)
        # An error from an older installation has not been judged yet.
        snapshot = conclude(locked.snapshot, context.now)
        others = await list_other_archives(session, workspace_id)
        chosen = _choose(snapshot, choice, others)
        archive_key = await _find_archive(session, snapshot, chosen, archive)
        if snapshot.desired_state is DesiredState.RUNNING:
            # It has a slot already, but limits that were lowered since apply to a new start.
            await require_enabled_owner(session, locked.owner_user_id, snapshot.phase)
            await reserve_slot(session, locked.owner_user_id, context.limits, excluding=workspace_id)
        request = RecoverRequest(chosen, _moment_after(locked.last_recovery_at, context.now), archive_key)
        await set_recover_request(session, workspace_id, request, context.now)
        await record_request(
            session,
            context,
            workspace_id,
            EventKind.RECOVERY_REQUESTED,
            snapshot.phase,
            error_reason=snapshot.error_reason,
            detail={"choice": chosen} | ({"archive": archive_key} if archive_key else {}),
        )
        by = Actor(context.actor, context.user_id, context.address)
        await record(
            session, Action.RECOVER, context.now, by=by, target_id=workspace_id, detail={"choice": chosen}
        )
    return chosen


def choices_of(view: WorkspaceView) -> tuple[RecoverChoice, ...]:
    """Return what *recover* accepts according to the last observation."""
    return choices(_snapshot_of(view), has_other_archives=bool(view.other_archives))


def archives_to_restore(view: WorkspaceView) -> list[ArchiveToRestore]:
    """Return the archives that *recover* can restore, newest first; the current one only if it is intact."""
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
    # Older versions did not record the time.
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


async def _lock(session: AsyncSession, workspace_id: WorkspaceId) -> LockedSnapshot:
    locked = await lock_snapshot(session, workspace_id)
    if locked is None or locked.snapshot.phase is Phase.DELETED:
        raise WorkspaceNotFound(workspace_id)
    require_idle(locked.snapshot.operation, locked.snapshot.claimed_at)
    return locked


def _choose(
    snapshot: Snapshot, choice: RecoverChoice | None, others: Sequence[OtherArchive]
) -> RecoverChoice:
    allowed = choices(snapshot, has_other_archives=bool(others))
    if not allowed:
        raise InvalidState(snapshot.phase, "There is no error to recover from.")
    if RecoverChoice.WAIT in allowed and choice in {None, RecoverChoice.RETRY}:
        return RecoverChoice.WAIT
    # Where files are lost, only the owner decides, even about trying again.
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
    """Return the key of the named archive, or None for the current one."""
    if choice is not RecoverChoice.RESTORE_ARCHIVE:
        return None
    current = naming.parse_archive_key(snapshot.archive_key or "")
    if archive is None or (current is not None and current.archive_op_id == str(archive)):
        if not can_restore_current(snapshot):
            message = "The last archive cannot be restored; name another one from `recover.archives`."
            raise InvalidState(snapshot.phase, message)
        return None
    if snapshot.conditions.home_is_out_of_reach:
        message = "Only the last archive can replace a home that is out of reach; name no other one."
        raise InvalidState(snapshot.phase, message)
    key = naming.archive_key(snapshot.workspace_id, str(archive))
    if not await is_available(session, key):
        message = "This workspace has no such archive; name one from `recover.archives`."
        raise InvalidState(snapshot.phase, message)
    return key


def _explain(allowed: Sequence[RecoverChoice]) -> str:
    return " or ".join(f"`{each}` ({CHOICES[each].meaning})" for each in allowed)


def _moment_after(last: datetime | None, now: datetime) -> datetime:
    """Return a time after the last request, whatever the clocks say: the time identifies a request."""
    return now if last is None else max(now, last + NEXT_MOMENT)
