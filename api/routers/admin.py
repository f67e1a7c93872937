"""All workspaces and the state of the system, for administrators."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from api import VERSION, queries
from api.context import ApiContext, Context
from api.health_checks import UNAVAILABLE, check_all
from api.pagination import Cursor, PageSize
from api.parameters import Phases, SearchText, WorkspacePath
from api.responses import json_response, workspace_page_response, workspace_response
from api.schemas.base import is_id
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
from api.schemas.workspaces import DiskLimit, Workspace, WorkspacePage
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import ApiActor, GuardedRoute
from api.serializers import serialize
from codehub.domain.conditions import WorkspaceId
from codehub.services.disk_limits import limit_disk
from codehub.services.errors import RequestRefused, WorkspaceNotFound
from codehub.services.recovery import request_recovery

router = APIRouter(prefix=f"{API}/admin", route_class=GuardedRoute, tags=["administration"])

MAX_ERRORS = 500


@router.get("/workspaces", response_model=WorkspacePage, summary="List all workspaces")
async def list_all_workspaces(
    context: ApiContext,
    phases: Phases = [],  # noqa: B006 (FastAPI copies it)
    search: SearchText = None,
    owner: Annotated[UUID | None, Query(description="Only workspaces of this user.")] = None,
    *,
    deleted: Annotated[bool, Query(description="Deleted workspaces instead.")] = False,
    cursor: Cursor = None,
    limit: PageSize = 50,
) -> Response:
    """Return workspaces of all users, newest first."""
    page = await queries.list_workspaces(
        context, owner, phases, search, deleted=deleted, cursor=cursor, limit=limit
    )
    return workspace_page_response(page, context)


@router.patch(
    "/workspaces/{workspace_id}/disk", response_model=Workspace, summary="Limit a workspace's disk space"
)
async def set_disk_limit(
    workspace_id: WorkspacePath, form: DiskLimit, by: ApiActor, context: ApiContext
) -> Response:
    """Set a limit that replaces the installation's. It applies at the next start; nothing is stopped."""
    await limit_disk(context.database, workspace_id, form.limit_bytes, now=context.now(), by=by)
    return workspace_response(await queries.load_workspace(context, workspace_id), context)


@router.get("/phases", response_model=PhaseCounts, summary="Count workspaces by phase")
async def read_phases(context: ApiContext) -> Response:
    """Deleted workspaces are not counted."""
    return json_response(PhaseCounts(phases=await queries.count_by_phase(context)))


@router.get("/errors", response_model=WorkspacePage, summary="List workspaces that need a person")
async def read_errors(context: ApiContext, limit: PageSize = 50) -> Response:
    """Return workspaces with an error, also in a deletion, that only a person can end; oldest first."""
    views = await queries.list_needing_person(context, limit)
    return json_response(WorkspacePage(items=[serialize(view, context) for view in views], next_cursor=None))


@router.post("/errors/recover", response_model=BulkRecovered, summary="Recover several workspaces")
async def recover_many(
    form: BulkRecover, caller: SignedInCaller, by: ApiActor, context: ApiContext
) -> Response:
    """Recover each workspace independently: one that is refused does not hold up the others."""
    if form.ids is None:
        views = await queries.list_needing_person(context, MAX_ERRORS)
    else:
        views = await queries.list_workspaces_by_id(
            context, [WorkspaceId(each) for each in form.ids if is_id(each)]
        )
    found = {str(view.workspace_id) for view in views}
    missing = [each for each in form.ids or [] if each not in found]
    recovered: list[str] = []
    refused = [Refused(id=each, message=str(WorkspaceNotFound(WorkspaceId(each)))) for each in missing]
    for view in views:
        try:
            await request_recovery(
                context.database,
                view.workspace_id,
                form.choice,
                context=context.request_by(caller, by.address),
            )
        except RequestRefused as refusal:
            refused.append(Refused(id=view.workspace_id, message=str(refusal)))
        else:
            context.waker.wake(view.workspace_id, str(view.owner_user_id))
            recovered.append(view.workspace_id)
    return json_response(BulkRecovered(recovered=recovered, refused=refused))


@router.get("/status", response_model=SystemStatus, summary="Read the state of the system")
async def read_status(context: ApiContext) -> Response:
    """Return the dependencies with their versions, the sweeps, and how many workspaces are in each phase."""
    healths = await check_all(context.dependencies)
    counts = await queries.count_workspaces(context)
    return json_response(
        SystemStatus(
            version=VERSION,
            now=context.now(),
            dependencies=[DependencyHealth.model_validate(each, from_attributes=True) for each in healths],
            sweeps=await _sweeps(context),
            phases=counts.phases,
            needs_person=counts.needs_person,
            limits=RunningLimitsView(
                running=counts.running,
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
