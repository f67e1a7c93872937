"""A person's recover request: carried out on a fresh look, and done when its outcome is stored."""

import asyncio
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from activities.recording import ACTOR
from codehub.db.events import EventKind, record_event
from codehub.db.recoveries import RecoverRequest, load_recover_request, mark_recovery_handled
from codehub.db.session import Database
from codehub.domain.conditions import ContainerFact, Facts, Snapshot, WorkspaceId
from codehub.domain.failures import Failure
from codehub.domain.judge import judge
from codehub.domain.recovery import Answer, answer, choices, recover
from codehub.ports import Instances

# A container that takes longer to end is left to the next sweep.
STOP_SECONDS = 20


def stray_container(judged: Snapshot, facts: Facts, asked: RecoverRequest) -> bool:
    """Whether a container is there that has to go before this request can be carried out."""
    if answer(judged, asked.choice) is not Answer.CARRY_OUT:
        return False
    seen = facts.container not in {ContainerFact.ABSENT, ContainerFact.UNREACHABLE}
    return seen and recover(judged, asked.choice).remove_container


async def remove_stray_container(
    database: Database, instances: Instances, workspace_id: WorkspaceId, asked: RecoverRequest
) -> None:
    """Stop it, unless something else is asked for by now; one that stays is seen by the next look."""
    async with database.transaction() as session:
        if await load_recover_request(session, workspace_id) != asked:
            return  # we were taken for dead: what runs now may be the recovered workspace itself
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await instances.stop(workspace_id)
    except (Failure, TimeoutError):
        return


async def carry_out(
    session: AsyncSession, judged: Snapshot, facts: Facts, asked: RecoverRequest | None, now: datetime
) -> Snapshot:
    """What to store instead of what was judged; under the row's lock. What cannot be done yet stays asked."""
    if asked is None or await load_recover_request(session, judged.workspace_id) != asked:
        return judged  # what has been asked since has its own wake, or the next sweep
    verdict = answer(judged, asked.choice)
    if verdict is Answer.WAIT:
        return judged
    if verdict is Answer.REFUSE:
        return await _refuse(session, judged, asked, now)
    recovery = recover(judged, asked.choice)
    if recovery.remove_container and facts.container is not ContainerFact.ABSENT:
        return judged
    outcome = judge(recovery.snapshot, facts, now)
    await _finish(session, outcome, asked, EventKind.RECOVERED, now)
    return outcome


async def _refuse(session: AsyncSession, judged: Snapshot, asked: RecoverRequest, now: datetime) -> Snapshot:
    """The choice was made on an earlier look, and what is there now does not call for it."""
    message = f"`{asked.choice}` is not possible any more, so nothing was changed or given up."
    allowed = list(choices(judged))
    await _finish(session, judged, asked, EventKind.RECOVERY_REFUSED, now, message=message, choices=allowed)
    return judged


async def _finish(
    session: AsyncSession,
    outcome: Snapshot,
    asked: RecoverRequest,
    kind: EventKind,
    now: datetime,
    **detail: object,
) -> None:
    await mark_recovery_handled(session, outcome.workspace_id, asked)
    await record_event(
        session,
        outcome.workspace_id,
        kind,
        now,
        actor=ACTOR,
        phase=outcome.phase,
        error_reason=outcome.error_reason,
        detail={"choice": asked.choice, **detail},
    )
