"""All workspaces and the state of the system, for administrators."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from api.context import Context, Provided
from api.health_checks import UNAVAILABLE, check_all
from api.responses import json_response
from api.routers.workspaces import Cursor, PageSize, Phases, SearchText, answer_page, clean_search
from api.schemas.system import (
    BulkRecover,
    BulkRecovered,
    DependencyHealth,
    PhaseCounts,
    Refused,
    RunningLimitsView,
    SweepView,
    SystemStatus,
)
from api.schemas.workspaces import WorkspacePage
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute
from api.serializers import serialize
from api.version import VERSION
from codehub.db.running_slots import count_running
from codehub.db.views import (
    ViewFilter,
    WorkspaceView,
    count_by_phase,
    count_needing_person,
    list_needing_person,
    list_views_by_id,
)
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Phase
from codehub.services.errors import RequestRefused
from codehub.services.recovery import request_recovery

router = APIRouter(prefix=f"{API}/admin", route_class=GuardedRoute, tags=["administration"])

MOST_ERRORS = 500


@router.get("/workspaces", response_model=WorkspacePage, summary="Everybody's workspaces")
async def list_all_workspaces(
    context: Provided,
    phases: Phases = [],  # noqa: B006 (FastAPI copies it)
    search: SearchText = None,
    owner: Annotated[UUID | None, Query(description="Only this user's.")] = None,
    *,
    deleted: Annotated[bool, Query(description="Those that are deleted.")] = False,
    cursor: Cursor = None,
    limit: PageSize = 50,
) -> Response:
    """Newest first."""
    wanted = ViewFilter(owner, frozenset(phases), clean_search(search), deleted)
    return await answer_page(context, wanted, cursor, limit)


@router.get("/phases", response_model=PhaseCounts, summary="Workspaces by phase")
async def read_phases(context: Provided) -> Response:
    """Deleted ones do not count."""
    async with context.database.transaction() as session:
        return json_response(PhaseCounts(phases=_all_phases(await count_by_phase(session))))


@router.get("/errors", response_model=WorkspacePage, summary="Workspaces that need a person")
async def read_errors(context: Provided, limit: PageSize = 50) -> Response:
    """Errors, also in deletions, that only recover or a purge ends; the oldest first."""
    async with context.database.transaction() as session:
        views = await list_needing_person(session, limit=limit)
    return json_response(WorkspacePage(items=[serialize(view, context) for view in views], next_cursor=None))


@router.post("/errors/recover", response_model=BulkRecovered, summary="Recover many")
async def recover_many(form: BulkRecover, caller: SignedInCaller, context: Provided) -> Response:
    """Each by itself: one that is refused does not hold up the others."""
    async with context.database.transaction() as session:
        if form.ids is None:
            views = await list_needing_person(session, limit=MOST_ERRORS)
        else:
            views = await list_views_by_id(session, _valid_ids(form.ids))
    recovered: list[str] = []
    refused = [Refused(id=each, message="There is no such workspace.") for each in _missing(form, views)]
    for view in views:
        try:
            await request_recovery(
                context.database,
                view.workspace_id,
                form.choice,
                context=context.request_by(caller),
            )
        except RequestRefused as refusal:
            refused.append(Refused(id=view.workspace_id, message=str(refusal)))
        else:
            context.waker.wake(view.workspace_id, str(view.owner_user_id))
            recovered.append(view.workspace_id)
    return json_response(BulkRecovered(recovered=recovered, refused=refused))


@router.get("/status", response_model=SystemStatus, summary="State of the system")
async def read_status(context: Provided) -> Response:
    """Each dependency with its version, the sweeps, how many workspaces are in which phase."""
    healths = await check_all(context.dependencies)
    async with context.database.transaction() as session:
        phases = await count_by_phase(session)
        running = await count_running(session)
        needs_person = await count_needing_person(session)
    return json_response(
        SystemStatus(
            version=VERSION,
            now=context.now(),
            dependencies=[DependencyHealth.model_validate(each, from_attributes=True) for each in healths],
            sweeps=await _sweeps(context),
            phases=_all_phases(phases),
            needs_person=needs_person,
            limits=RunningLimitsView(
                running=running,
                max_running_global=context.limits.total,
                max_running_per_user=context.limits.per_user,
            ),
            live_clients=context.hub.clients,
        )
    )


async def _sweeps(context: Context) -> list[SweepView]:
    try:
        states = await context.sweeps.read()
    except UNAVAILABLE:
        return []
    now = context.now()
    return [
        SweepView(
            id=state.schedule_id,
            paused=state.paused,
            running=state.running,
            last_started_at=state.last_started_at,
            next_at=state.next_at,
            age_seconds=(now - state.last_started_at).total_seconds() if state.last_started_at else None,
        )
        for state in states
    ]


def _all_phases(counted: dict[Phase, int]) -> dict[str, int]:
    return {phase: counted.get(phase, 0) for phase in Phase if phase is not Phase.DELETED}


def _valid_ids(ids: list[str]) -> list[WorkspaceId]:
    return [WorkspaceId(each) for each in ids if _is_id(each)]


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _missing(form: BulkRecover, views: list[WorkspaceView]) -> list[str]:
    found = {str(view.workspace_id) for view in views}
    return [each for each in form.ids or [] if each not in found]
