"""Network policies: what a workspace may connect to, and what it connected to."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from api import queries
from api.context import ApiContext, Context
from api.pagination import LogCursor, PageSize, encode_log_key
from api.parameters import LoadedWorkspace, WorkspacePath
from api.queries import EgressFilter
from api.responses import json_response
from api.schemas.base import Text
from api.schemas.network import (
    EgressItem,
    EgressPage,
    NetworkLog,
    NetworkLogItem,
    NetworkPolicy,
    PatchNetworkPolicy,
    Policy,
)
from api.security.access import API
from api.security.guard import ApiActor, GuardedRoute
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressPolicy, Verdict
from codehub.services.network_policies import choose_policy, limit_policy, read_log, read_policies

router = APIRouter(prefix=API, route_class=GuardedRoute, tags=["network"])


@router.get(
    "/workspaces/{workspace_id}/network", response_model=NetworkPolicy, summary="Read the network policy"
)
async def read_network_policy(workspace: LoadedWorkspace, context: ApiContext) -> Response:
    """Return what the workspace may connect to, and which policies decide that."""
    return await _response(workspace.workspace_id, context)


@router.patch(
    "/workspaces/{workspace_id}/network", response_model=NetworkPolicy, summary="Choose a network policy"
)
async def choose_network_policy(
    workspace_id: WorkspacePath, form: PatchNetworkPolicy, by: ApiActor, context: ApiContext
) -> Response:
    """Restrict what the workspace may connect to. Applies within seconds, also to open connections."""
    await choose_policy(context.database, workspace_id, form.mode, form.names, now=context.now(), by=by)
    return await _response(workspace_id, context)


@router.get(
    "/workspaces/{workspace_id}/network/log", response_model=NetworkLog, summary="List connections by name"
)
async def read_network_log(workspace: LoadedWorkspace, context: ApiContext) -> Response:
    """Return the names that it connected to or was refused in the last seven days."""
    entries = await read_log(context.reading, workspace.workspace_id, context.now())
    items = [NetworkLogItem.model_validate(entry, from_attributes=True) for entry in entries]
    return json_response(NetworkLog(items=items))


@router.get("/admin/egress", response_model=EgressPage, summary="List the connections of all workspaces")
async def read_egress(
    context: ApiContext,
    *,
    workspace: Annotated[UUID | None, Query(description="Only this workspace.")] = None,
    user: Annotated[
        str | None, Query(max_length=200, description="Only workspaces of this user."), Text
    ] = None,
    name: Annotated[
        str | None, Query(max_length=100, description="Part of the name connected to."), Text
    ] = None,
    refused: Annotated[bool, Query(description="Only what was refused.")] = False,
    cursor: LogCursor = None,
    limit: PageSize = 50,
) -> Response:
    """Return the names that workspaces connected to or were refused, newest hour first."""
    wanted = EgressFilter(
        None if workspace is None else WorkspaceId(str(workspace)),
        user,
        name,
        Verdict.REFUSED if refused else None,
    )
    found = await queries.list_egress(context, wanted, cursor=cursor, limit=limit)
    items = [EgressItem.model_validate(each, from_attributes=True) for each in found]
    last = encode_log_key(found[-1]) if len(found) == limit else None
    return json_response(EgressPage(items=items, next_cursor=last))


@router.patch(
    "/admin/workspaces/{workspace_id}/network",
    response_model=NetworkPolicy,
    summary="Limit a workspace's network",
)
async def limit_network_policy(
    workspace_id: WorkspacePath, form: PatchNetworkPolicy, by: ApiActor, context: ApiContext
) -> Response:
    """Set a policy that replaces the installation's; the owner can tighten it, but not loosen it."""
    await limit_policy(context.database, workspace_id, form.mode, form.names, now=context.now(), by=by)
    return await _response(workspace_id, context)


async def _response(workspace_id: WorkspaceId, context: Context) -> Response:
    stored = await read_policies(context.reading, workspace_id)
    network = context.network
    return json_response(
        NetworkPolicy(
            enforced=context.options.has_egress_gateway,
            choice=_policy(stored.choice) if stored.choice else None,
            limit=_policy(stored.limit) if stored.limit else None,
            installation=_policy(network.installation),
            owners_may_loosen=network.owners_may_loosen,
            effective=[_policy(each) for each in network.rules_of(stored).policies],
        )
    )


def _policy(policy: EgressPolicy) -> Policy:
    return Policy(mode=policy.mode, names=sorted(policy.names))
