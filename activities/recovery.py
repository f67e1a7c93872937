"""Carries out recover requests on a fresh observation."""

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
from codehub.domain.recovery import (
    RecoverChoice,
    RecoverVerdict,
    Recovery,
    choices,
    judge_choice,
    must_set_aside,
    note_obstacle,
    recover,
)
from codehub.ports import Instances

# A container that takes longer to stop is left to the next sweep.
STOP_SECONDS = 20
# All that is done about a home on a lost node in one observation; what takes longer goes on in the next one.
SET_ASIDE_SECONDS = 25
TAKES_LONGER = "The instance or the storage job on that node has not ended yet. CodeHub checks again soon."


@dataclass(frozen=True)
class PendingRequest:
    """A recover request and an observation of the archive that it names."""

    request: RecoverRequest
    named_archive: ArchiveFact | None = None
    # Why the home on a lost node could not be set aside yet.
    obstacle: str | None = None


async def observe_named_archive(observer: Observer, request: RecoverRequest) -> PendingRequest:
    if request.archive_key is None:
        return PendingRequest(request)
    return PendingRequest(request, await observer.observe_archive(request.archive_key))


def has_stray_container(judged: Snapshot, facts: Observation, pending: PendingRequest) -> bool:
    """Return whether a container must be removed before this request can be carried out."""
    if judge_choice(judged, pending.request.choice, pending.named_archive) is not RecoverVerdict.CARRY_OUT:
        return False
    exists = facts.container not in {ContainerFact.ABSENT, ContainerFact.UNREACHABLE}
    return exists and _recover(judged, pending.request).remove_container


async def _is_current(database: Database, workspace_id: WorkspaceId, request: RecoverRequest) -> bool:
    async with database.transaction() as session:
        return await load_recover_request(session, workspace_id) == request


async def remove_stray_container(
    database: Database, instances: Instances, workspace_id: WorkspaceId, request: RecoverRequest
) -> None:
    """Stop the container if the request is still current. The next observation shows whether it worked."""
    if not await _is_current(database, workspace_id, request):
        return  # the container may belong to the recovered workspace
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await instances.stop(workspace_id)
    except (Failure, TimeoutError):
        return


def has_home_on_lost_node(judged: Snapshot, pending: PendingRequest) -> bool:
    """Return whether the volume must be set aside before this request can be carried out."""
    return pending.request.archive_key is None and must_set_aside(judged, pending.request.choice)


async def set_home_aside(
    database: Database, observer: Observer, workspace_id: WorkspaceId, pending: PendingRequest
) -> PendingRequest:
    """Remove the instance, then set the volume aside, if the request is still current.

    The next observation shows whether it worked. A crash in between leaves an open request, and either a
    home on a lost node or a volume that is kept and a home that is known as lost.
    """
    try:
        async with asyncio.timeout(SET_ASIDE_SECONDS):
            if await _is_current(database, workspace_id, pending.request):
                await observer.instances.stop(workspace_id)
            # The stop can take long enough for a change of mind.
            if await _is_current(database, workspace_id, pending.request):
                await observer.volumes.set_aside(workspace_id)
    except Failure as failure:
        return replace(pending, obstacle=failure.message)
    except TimeoutError:
        return replace(pending, obstacle=TAKES_LONGER)
    return pending


async def carry_out(
    session: AsyncSession, judged: Snapshot, facts: Observation, pending: PendingRequest | None, now: datetime
) -> Snapshot:
    """Return the snapshot to store, under the row's lock. A request that has to wait stays pending."""
    if pending is None or await load_recover_request(session, judged.workspace_id) != pending.request:
        return judged  # a newer request has its own wake
    request = pending.request
    verdict = judge_choice(judged, request.choice, await _named_archive(session, pending))
    if verdict is RecoverVerdict.WAIT:
        return note_obstacle(judged, pending.obstacle) if pending.obstacle else judged
    if verdict is RecoverVerdict.REFUSE:
        return await _refuse(session, judged, request, now)
    recovery = _recover(judged, request)
    if recovery.remove_container and facts.container is not ContainerFact.ABSENT:
        return judged
    if recovery.keep_archives:
        chosen = recovery.snapshot.archive_key
        await mark_given_up(session, judged.workspace_id, current=judged.archive_key, chosen=chosen, now=now)
    outcome = judge(recovery.snapshot, replace(facts, archive=pending.named_archive or facts.archive), now)
    if request.choice is RecoverChoice.WAIT:
        await mark_recovery_handled(session, outcome.workspace_id, request)
        return outcome
    await _finish(session, outcome, request, EventKind.RECOVERED, now)
    return outcome


async def _named_archive(session: AsyncSession, pending: PendingRequest) -> ArchiveFact | None:
    """Return the observed archive, or ABSENT if the collector has marked it for removal since."""
    key = pending.request.archive_key
    if key is None or await is_available(session, key):
        return pending.named_archive
    return ArchiveFact.ABSENT


def _recover(judged: Snapshot, request: RecoverRequest) -> Recovery:
    return recover(judged, request.choice, request.archive_key)


async def _refuse(
    session: AsyncSession, judged: Snapshot, request: RecoverRequest, now: datetime
) -> Snapshot:
    """Refuse a choice that no longer fits what exists."""
    message = f"`{request.choice}` is no longer possible, so nothing was changed."
    others = await list_other_archives(session, judged.workspace_id)
    allowed = list(choices(judged, has_other_archives=bool(others)))
    await _finish(session, judged, request, EventKind.RECOVERY_REFUSED, now, message=message, choices=allowed)
    return judged


async def _finish(
    session: AsyncSession,
    outcome: Snapshot,
    request: RecoverRequest,
    kind: EventKind,
    now: datetime,
    **detail: object,
) -> None:
    await mark_recovery_handled(session, outcome.workspace_id, request)
    await record_event(
        session,
        outcome.workspace_id,
        kind,
        now,
        actor=ACTOR,
        phase=outcome.phase,
        error_reason=outcome.error_reason,
        detail={
            "choice": request.choice,
            **({"archive": request.archive_key} if request.archive_key else {}),
            **detail,
        },
    )
