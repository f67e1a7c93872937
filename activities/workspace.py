"""The row's own activities: look and judge, claim, commit, settle. Each stores in one short transaction."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncSession
from temporalio import activity

from activities.fencing import load_current
from activities.looking import Eyes
from activities.recording import ACTOR, save_change
from activities.recovering import Asked, carry_out, look_at_named, remove_stray_container, stray_container
from codehub.contracts import AttemptEnded, AttemptFailed, ClaimRequest, OperationRequest, SettleRequest
from codehub.db.archives import record_archive
from codehub.db.claims import load_claim
from codehub.db.events import EventKind, record_event
from codehub.db.recoveries import load_recover_request
from codehub.db.session import Database
from codehub.db.workspaces import claim_operation, load_snapshot, save_observation
from codehub.domain import transitions
from codehub.domain.conditions import Facts, Snapshot, WorkspaceId
from codehub.domain.judge import conclude, judge
from codehub.domain.planner import Decision, Plan, plan
from codehub.domain.recovery import CHOOSES_ARCHIVE
from codehub.domain.states import Operation
from codehub.ports import StoredArchive


@dataclass(frozen=True)
class WorkspaceActivities:
    """What the workspace's workflow does to its row. Nobody else writes these columns."""

    database: Database
    eyes: Eyes

    @activity.defn
    async def observe(self, workspace_id: WorkspaceId) -> Snapshot | None:
        """Look at reality, carry out a recover request, store what follows; None if it does not exist."""
        facts, asked = await self._look_for_request(workspace_id)
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            before = await load_snapshot(session, workspace_id, for_update=True)
            if before is None:
                return None
            after = await carry_out(session, judge(before, facts, now), facts, asked, now)
            await save_change(session, before, after, now)
        return after

    @activity.defn
    async def claim(self, request: ClaimRequest) -> OperationRequest | None:
        """Begin the operation, or go on with a claimed one; None if it is no longer the plan."""
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_snapshot(session, request.workspace_id, for_update=True)
            if row is None:
                return None
            if row.operation is Operation.NONE:
                row = await _begin(session, row, request, now)
            return await _operation_request(session, row) if row else None

    @activity.defn
    async def commit_archive(self, request: OperationRequest, archive: StoredArchive) -> None:
        """Store the key of what was uploaded; only after this may the volume go."""
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_current(session, request)
            await record_archive(
                session, archive.key, size_bytes=archive.size_bytes, sha256=archive.sha256, now=now
            )
            await save_observation(session, transitions.commit_archive(row), now)

    @activity.defn
    async def mark_restored(self, request: OperationRequest) -> None:
        """Say that the restore has come to its end; before this the volume does not count."""
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_current(session, request)
            await save_observation(session, transitions.mark_restored(row), now)

    @activity.defn
    async def settle(self, request: SettleRequest) -> AttemptEnded | None:
        """Look again, and end the operation if its result is there."""
        facts = await self._look(request.workspace_id)
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            before = await load_snapshot(session, request.workspace_id, for_update=True)
            if before is None:
                return None
            settlement = transitions.settle(judge(before, facts, now), now, request.jitter)
            await save_change(session, before, settlement.snapshot, now)
        return AttemptEnded(settlement.snapshot, settlement.retry_after_seconds)

    @activity.defn
    async def record_failure(self, failed: AttemptFailed) -> AttemptEnded | None:
        """Count a failed attempt; the error policy decides whether it was the last."""
        # Who has to decide about lost or damaged files must see what is left of them.
        facts = await self._look(failed.workspace_id) if failed.reason in CHOOSES_ARCHIVE else None
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            before = await load_snapshot(session, failed.workspace_id, for_update=True)
            if before is None:
                return None
            if before.operation is Operation.NONE:
                return AttemptEnded(before, None)  # told twice: the first time has ended it
            seen = judge(before, facts, now) if facts else before
            settlement = transitions.fail(seen, failed.reason, failed.message, now, failed.jitter)
            await save_change(session, before, settlement.snapshot, now)
        return AttemptEnded(settlement.snapshot, settlement.retry_after_seconds)

    async def _look(self, workspace_id: WorkspaceId) -> Facts:
        async with self.database.transaction() as session:
            row = await load_snapshot(session, workspace_id)
        return await self.eyes.look(workspace_id, row.archive_key if row else None)

    async def _look_for_request(self, workspace_id: WorkspaceId) -> tuple[Facts, Asked | None]:
        """Look; where a recover request needs a stray container gone, remove it and look again."""
        async with self.database.transaction() as session:
            row = await load_snapshot(session, workspace_id)
            request = await load_recover_request(session, workspace_id)
        facts = await self.eyes.look(workspace_id, row.archive_key if row else None)
        if row is None or request is None:
            return facts, None
        asked = await look_at_named(self.eyes, request)
        if stray_container(judge(row, facts, datetime.now(UTC)), facts, asked):
            await remove_stray_container(self.database, self.eyes.instances, workspace_id, request)
            facts = await self.eyes.look(workspace_id, row.archive_key)
        return facts, asked


async def _begin(
    session: AsyncSession, row: Snapshot, request: ClaimRequest, now: datetime
) -> Snapshot | None:
    # The stored phase may be that of a deletion which a person has taken back since.
    if plan(conclude(row, now)) != Plan(Decision.RUN, request.operation):
        return None  # since it was planned, a person has asked for something else
    claimed = transitions.claim(row, request.operation, request.new_archive_op_id)
    if not await claim_operation(session, claimed, now):
        return None
    await record_event(
        session,
        claimed.workspace_id,
        EventKind.OPERATION_CLAIMED,
        now,
        actor=ACTOR,
        operation=claimed.operation,
        phase=claimed.phase,
    )
    return claimed


async def _operation_request(session: AsyncSession, row: Snapshot) -> OperationRequest | None:
    claim = await load_claim(session, row.workspace_id)
    if claim is None or claim.claimed_at is None:
        return None
    return OperationRequest(
        workspace_id=row.workspace_id,
        owner_id=claim.owner_id,
        operation=row.operation,
        claimed_at=claim.claimed_at,
        image_ref=claim.image_ref,
        archive_key=row.archive_key,
        archive_op_id=row.archive_op_id,
        needs_upload=transitions.needs_upload(row),
    )
