"""The row's own activities: look and judge, claim, commit, settle. Each stores in one short transaction."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncSession
from temporalio import activity

from activities.audit_trail import ACTOR, save_change
from activities.fencing import load_current
from activities.observer import Observer
from activities.recovery import Asked, carry_out, look_at_named, remove_stray_container, stray_container
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

# A row that changes under every one of so many looks is left to Temporal's next try.
MAX_LOOKS = 5


class StaleLook(Exception):
    """The row kept changing between looking at the world and storing what was seen."""


@dataclass(frozen=True)
class Look:
    """An observation and the row that it was made for; it says nothing about a later row."""

    row: Snapshot | None
    facts: Observation
    asked: Asked | None = None


@dataclass(frozen=True)
class WorkspaceActivities:
    """What the workspace's workflow does to its row. Nobody else writes these columns."""

    database: Database
    eyes: Observer

    @activity.defn
    async def observe(self, workspace_id: WorkspaceId) -> Observed | None:
        """Look at reality, carry out a recover request, store what follows; None if it does not exist."""

        async def store(session: AsyncSession, before: Snapshot, look: Look, now: datetime) -> Observed:
            judged = judge(before, look.facts, now)
            carried_out = await carry_out(session, judged, look.facts, look.asked, now)
            released = transitions.release(carried_out, now)
            after = note_waiting(released, now, recovering=await self._still_asked(session, look))
            await save_change(session, before, after, now, released=released is not carried_out)
            return with_plan(after)

        return await self._store_look(workspace_id, self._look_for_request, store)

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
            if row.archive_key is not None:
                await mark_verified(session, row.archive_key, now)
            await save_observation(session, transitions.mark_restored(row), now)

    @activity.defn
    async def settle(self, request: SettleRequest) -> AttemptEnded | None:
        """Look again, and end the operation if its result is there."""

        async def store(session: AsyncSession, before: Snapshot, look: Look, now: datetime) -> AttemptEnded:
            if _is_over(before, request.claimed_at):
                return AttemptEnded(with_plan(before), None)
            settlement = transitions.settle(judge(before, look.facts, now), now, request.jitter)
            return await _end_attempt(session, before, settlement, now)

        return await self._store_look(request.workspace_id, self._look, store)

    @activity.defn
    async def record_failure(self, failed: AttemptFailed) -> AttemptEnded | None:
        """Count a failed attempt; the error policy decides whether it was the last."""

        async def store(session: AsyncSession, before: Snapshot, look: Look, now: datetime) -> AttemptEnded:
            return await _fail_attempt(session, before, judge(before, look.facts, now), failed, now)

        # A person who has to decide about lost or damaged files must see what is left of them.
        if failed.reason in CHOOSES_ARCHIVE:
            return await self._store_look(failed.workspace_id, self._look, store)
        async with self.database.transaction() as session:
            row = await load_snapshot(session, failed.workspace_id, for_update=True)
            return await _fail_attempt(session, row, row, failed, datetime.now(UTC)) if row else None

    async def _store_look(
        self,
        workspace_id: WorkspaceId,
        look: Callable[[WorkspaceId], Awaitable[Look]],
        store: Callable[[AsyncSession, Snapshot, Look, datetime], Awaitable[Result]],
    ) -> Result | None:
        """Store what a look means for the row that it was made for; look again if that row has changed.

        A worker that was paused while it looked would otherwise judge a later row by earlier facts, and call
        a home lost that was not there yet.
        """
        for _ in range(MAX_LOOKS):
            seen = await look(workspace_id)
            now = datetime.now(UTC)
            async with self.database.transaction() as session:
                row = await load_snapshot(session, workspace_id, for_update=True)
                if row is None:
                    return None
                if row == seen.row:
                    return await store(session, row, seen, now)
        raise StaleLook(f"workspace {workspace_id} kept changing while it was looked at")

    async def _still_asked(self, session: AsyncSession, look: Look) -> bool:
        """Whether a recover request waits for a provider: it is neither carried out nor refused."""
        if look.row is None or look.asked is None:
            return False
        return await load_recover_request(session, look.row.workspace_id) == look.asked.request

    async def _look(self, workspace_id: WorkspaceId) -> Look:
        async with self.database.transaction() as session:
            row = await load_snapshot(session, workspace_id)
        return Look(row, await self.eyes.observe(workspace_id, row.archive_key if row else None))

    async def _look_for_request(self, workspace_id: WorkspaceId) -> Look:
        """Look; where a recover request needs a stray container gone, remove it and look again."""
        async with self.database.transaction() as session:
            row = await load_snapshot(session, workspace_id)
            request = await load_recover_request(session, workspace_id)
        look = Look(row, await self.eyes.observe(workspace_id, row.archive_key if row else None))
        if row is None or request is None:
            return look
        asked = await look_at_named(self.eyes, request)
        if stray_container(judge(row, look.facts, datetime.now(UTC)), look.facts, asked):
            await remove_stray_container(self.database, self.eyes.instances, workspace_id, request)
            look = Look(row, await self.eyes.observe(workspace_id, row.archive_key))
        return replace(look, asked=asked)


def _is_over(row: Snapshot, claimed_at: datetime | None) -> bool:
    """Whether another claim has followed the one that a report is about."""
    return claimed_at is not None and claimed_at != row.claimed_at


async def _fail_attempt(
    session: AsyncSession, before: Snapshot, seen: Snapshot, failed: AttemptFailed, now: datetime
) -> AttemptEnded:
    if before.operation is Operation.NONE or _is_over(before, failed.claimed_at):
        # Duplicate report: the attempt has already ended.
        return AttemptEnded(with_plan(before), None)
    settlement = transitions.fail(seen, failed.reason, failed.message, now, failed.jitter)
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
        needs_upload=needs_upload(row),
    )
