"""Activities that update the row of a workspace, each in one short transaction."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncSession
from temporalio import activity

from activities.audit_trail import ACTOR, save_change
from activities.fencing import load_current
from activities.observer import Observer
from activities.recovery import (
    PendingRequest,
    carry_out,
    has_home_on_lost_node,
    has_stray_container,
    observe_named_archive,
    remove_stray_container,
    set_home_aside,
)
from codehub.contracts import (
    AttemptEnded,
    AttemptFailed,
    ClaimRequest,
    Observed,
    OperationRequest,
    SettleRequest,
    with_plan,
)
from codehub.db.archives import mark_verified, record_archive
from codehub.db.events import EventKind, record_event
from codehub.db.recoveries import load_recover_request
from codehub.db.session import Database
from codehub.db.snapshots import claim_operation, load_claim, load_snapshot, save_observation
from codehub.domain import transitions
from codehub.domain.conditions import Observation, Snapshot, WorkspaceId
from codehub.domain.judge import conclude, judge
from codehub.domain.planner import Decision, Plan, needs_upload, note_waiting, plan
from codehub.domain.recovery import CHOOSES_ARCHIVE
from codehub.domain.states import Operation
from codehub.ports import StoredArchive

Result = TypeVar("Result")

# If the row changes during each of these observations, Temporal retries the activity later.
MAX_OBSERVATIONS = 5


class StaleObservation(Exception):
    """The row kept changing between the observation and its storage."""


@dataclass(frozen=True)
class ObservedRow:
    """An observation and the row that it was made for; it says nothing about a later row."""

    row: Snapshot | None
    facts: Observation
    pending: PendingRequest | None = None


@dataclass(frozen=True)
class WorkspaceActivities:
    """The changes that a workflow makes to its row. Nothing else writes these columns."""

    database: Database
    observer: Observer

    @activity.defn
    async def observe(self, workspace_id: WorkspaceId) -> Observed | None:
        """Observe, carry out a recover request and store the result. Return None without a row."""

        async def store(
            session: AsyncSession, before: Snapshot, observed: ObservedRow, now: datetime
        ) -> Observed:
            judged = judge(before, observed.facts, now)
            carried_out = await carry_out(session, judged, observed.facts, observed.pending, now)
            released = transitions.release(carried_out, now)
            after = note_waiting(released, now, recovering=await self._request_is_pending(session, observed))
            await save_change(session, before, after, now, released=released is not carried_out)
            return with_plan(after)

        return await self._observe_and_store(workspace_id, self._observe_with_request, store)

    @activity.defn
    async def claim(self, request: ClaimRequest) -> OperationRequest | None:
        """Claim the operation, or continue a claimed one. Return None if it is no longer planned."""
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
        """Store the key of the uploaded archive. The volume may be removed only after this."""
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_current(session, request)
            await record_archive(
                session, archive.key, size_bytes=archive.size_bytes, sha256=archive.sha256, now=now
            )
            await save_observation(session, transitions.commit_archive(row), now)

    @activity.defn
    async def mark_restored(self, request: OperationRequest) -> None:
        """Record that the restore is complete. Before this, the volume does not count."""
        now = datetime.now(UTC)
        async with self.database.transaction() as session:
            row = await load_current(session, request)
            if row.archive_key is not None:
                await mark_verified(session, row.archive_key, now)
            await save_observation(session, transitions.mark_restored(row), now)

    @activity.defn
    async def settle(self, request: SettleRequest) -> AttemptEnded | None:
        """Observe again, and end the operation if it is complete."""

        async def store(
            session: AsyncSession, before: Snapshot, observed: ObservedRow, now: datetime
        ) -> AttemptEnded:
            if _is_over(before, request.claimed_at):
                return AttemptEnded(with_plan(before), None)
            settlement = transitions.settle(judge(before, observed.facts, now), now, request.jitter)
            return await _end_attempt(session, before, settlement, now)

        return await self._observe_and_store(request.workspace_id, self._observe, store)

    @activity.defn
    async def record_failure(self, failed: AttemptFailed) -> AttemptEnded | None:
        """Count a failed attempt. The error policy decides whether it was the last."""

        async def store(
            session: AsyncSession, before: Snapshot, observed: ObservedRow, now: datetime
        ) -> AttemptEnded:
            return await _fail_attempt(session, before, judge(before, observed.facts, now), failed, now)

        # A person who decides about lost or damaged files must see what is left of them.
        if failed.reason in CHOOSES_ARCHIVE:
            return await self._observe_and_store(failed.workspace_id, self._observe, store)
        async with self.database.transaction() as session:
            row = await load_snapshot(session, failed.workspace_id, for_update=True)
            return await _fail_attempt(session, row, row, failed, datetime.now(UTC)) if row else None

    async def _observe_and_store(
        self,
        workspace_id: WorkspaceId,
        observe: Callable[[WorkspaceId], Awaitable[ObservedRow]],
        store: Callable[[AsyncSession, Snapshot, ObservedRow, datetime], Awaitable[Result]],
    ) -> Result | None:
        """Observe and store the result for the observed row; observe again if the row has changed.

        Otherwise a worker that was paused meanwhile would judge a newer row by an older observation, and
        report a home as lost that did not exist yet.
        """
        for _ in range(MAX_OBSERVATIONS):
            observed = await observe(workspace_id)
            now = datetime.now(UTC)
            async with self.database.transaction() as session:
                row = await load_snapshot(session, workspace_id, for_update=True)
                if row is None:
                    return None
                if row == observed.row:
                    return await store(session, row, observed, now)
        raise StaleObservation(f"workspace {workspace_id} kept changing while it was observed")

    async def _request_is_pending(self, session: AsyncSession, observed: ObservedRow) -> bool:
        """Return whether a recover request still waits, neither carried out nor refused."""
        if observed.row is None or observed.pending is None:
            return False
        current = await load_recover_request(session, observed.row.workspace_id)
        return current == observed.pending.request

    async def _observe(self, workspace_id: WorkspaceId) -> ObservedRow:
        async with self.database.transaction() as session:
            row = await load_snapshot(session, workspace_id)
        return ObservedRow(row, await self.observer.observe(workspace_id, row.archive_key if row else None))

    async def _observe_with_request(self, workspace_id: WorkspaceId) -> ObservedRow:
        """Observe. If a recover request needs something out of the way, remove it and observe again."""
        async with self.database.transaction() as session:
            row = await load_snapshot(session, workspace_id)
            request = await load_recover_request(session, workspace_id)
        observed = ObservedRow(
            row, await self.observer.observe(workspace_id, row.archive_key if row else None)
        )
        if row is None or request is None:
            return observed
        pending = await observe_named_archive(self.observer, request)
        judged = judge(row, observed.facts, datetime.now(UTC))
        if has_home_on_lost_node(judged, pending):
            pending = await set_home_aside(self.database, self.observer, workspace_id, pending)
        elif has_stray_container(judged, observed.facts, pending):
            await remove_stray_container(self.database, self.observer.instances, workspace_id, request)
        else:
            return replace(observed, pending=pending)
        return ObservedRow(row, await self.observer.observe(workspace_id, row.archive_key), pending)


def _is_over(row: Snapshot, claimed_at: datetime | None) -> bool:
    """Return whether another claim has followed the reported one."""
    return claimed_at is not None and claimed_at != row.claimed_at


async def _fail_attempt(
    session: AsyncSession, before: Snapshot, observed: Snapshot, failed: AttemptFailed, now: datetime
) -> AttemptEnded:
    if before.operation is Operation.NONE or _is_over(before, failed.claimed_at):
        # Duplicate report: the attempt has already ended.
        return AttemptEnded(with_plan(before), None)
    settlement = transitions.fail(observed, failed.reason, failed.message, now, failed.jitter)
    return await _end_attempt(session, before, settlement, now)


async def _end_attempt(
    session: AsyncSession, before: Snapshot, settlement: transitions.Settlement, now: datetime
) -> AttemptEnded:
    after = note_waiting(settlement.snapshot, now)
    await save_change(session, before, after, now)
    return AttemptEnded(with_plan(after), settlement.retry_after_seconds)


async def _begin(
    session: AsyncSession, row: Snapshot, request: ClaimRequest, now: datetime
) -> Snapshot | None:
    # The stored phase can be from a deletion that was undone since.
    if plan(conclude(row, now)) != Plan(Decision.RUN, request.operation):
        return None  # the desired state has changed since
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
        needs_upload=needs_upload(row),
    )
