"""A person's recover request: carried out on a fresh look, and done when its outcome is stored."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from activities.audit_trail import ACTOR
from activities.observer import Observer
from codehub.db.archive_views import list_other_archives
from codehub.db.archives import is_available, mark_given_up
from codehub.db.events import EventKind, record_event
from codehub.db.recoveries import RecoverRequest, load_recover_request, mark_recovery_handled
from codehub.db.session import Database
from codehub.domain.conditions import ArchiveFact, ContainerFact, Observation, Snapshot, WorkspaceId
from codehub.domain.failures import Failure
from codehub.domain.judge import judge
from codehub.domain.recovery import RecoverVerdict, Recovery, choices, judge_choice, recover
from codehub.ports import Instances

# A container that takes longer to end is left to the next sweep.
STOP_SECONDS = 20


@dataclass(frozen=True)
class Asked:
    """A request, with a look at the archive that it names."""

    request: RecoverRequest
    named: ArchiveFact | None = None


async def look_at_named(eyes: Observer, request: RecoverRequest) -> Asked:
    if request.archive_key is None:
        return Asked(request)
    return Asked(request, await eyes.look_at_archive(request.archive_key))


def stray_container(judged: Snapshot, facts: Observation, asked: Asked) -> bool:
    """Whether a container is there that has to go before this request can be carried out."""
    if judge_choice(judged, asked.request.choice, asked.named) is not RecoverVerdict.CARRY_OUT:
        return False
    seen = facts.container not in {ContainerFact.ABSENT, ContainerFact.UNREACHABLE}
    return seen and _recover(judged, asked.request).remove_container


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
    session: AsyncSession, judged: Snapshot, facts: Observation, asked: Asked | None, now: datetime
) -> Snapshot:
    """What to store instead of what was judged; under the row's lock. What cannot be done yet stays asked."""
    if asked is None or await load_recover_request(session, judged.workspace_id) != asked.request:
        return judged  # what has been asked since has its own wake, or the next sweep
    request = asked.request
    verdict = judge_choice(judged, request.choice, await _still(session, asked))
    if verdict is RecoverVerdict.WAIT:
        return judged
    if verdict is RecoverVerdict.REFUSE:
        return await _refuse(session, judged, request, now)
    recovery = _recover(judged, request)
    if recovery.remove_container and facts.container is not ContainerFact.ABSENT:
        return judged
    if recovery.keep_archives:
        chosen = recovery.snapshot.archive_key
        await mark_given_up(session, judged.workspace_id, current=judged.archive_key, chosen=chosen, now=now)
    outcome = judge(recovery.snapshot, replace(facts, archive=asked.named or facts.archive), now)
    await _finish(session, outcome, request, EventKind.RECOVERED, now)
    return outcome


async def _still(session: AsyncSession, asked: Asked) -> ArchiveFact | None:
    """The named archive by the look, unless the collector has said since that it removes it."""
    key = asked.request.archive_key
    if key is None or await is_available(session, key):
        return asked.named
    return ArchiveFact.ABSENT


def _recover(judged: Snapshot, request: RecoverRequest) -> Recovery:
    return recover(judged, request.choice, request.archive_key)


async def _refuse(session: AsyncSession, judged: Snapshot, asked: RecoverRequest, now: datetime) -> Snapshot:
    """The choice was made on an earlier look, and what is there now does not call for it."""
    message = f"`{asked.choice}` is not possible any more, so nothing was changed or given up."
    others = await list_other_archives(session, judged.workspace_id)
    allowed = list(choices(judged, has_other_archives=bool(others)))
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
        detail={
            "choice": asked.choice,
            **({"archive": asked.archive_key} if asked.archive_key else {}),
            **detail,
        },
    )
