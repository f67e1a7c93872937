"""Ports of a workspace: list them, share one, stop sharing it."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Response

from api.context import ApiContext, Context
from api.errors import ApiError
from api.parameters import LoadedWorkspace, WorkspacePath
from api.responses import json_response
from api.schemas.errors import Code
from api.schemas.ports import PortItem, PortList, Share, SharedPort, SharePort
from api.security.access import API
from api.security.guard import ApiActor, GuardedRoute
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import FIRST_PORT, LAST_PORT, PortShare, shares_in_force
from codehub.ports import ListeningPort, PortUnavailable
from codehub.services.port_shares import share_port, unshare_port

router = APIRouter(
    prefix=f"{API}/workspaces/{{workspace_id}}/ports", route_class=GuardedRoute, tags=["ports"]
)

NO_ORIGINS = (
    "Ports need an origin of their own. An administrator can set CODEHUB_WORKSPACES_ORIGINS to subdomain."
)
PortNumber = Annotated[int, Path(ge=FIRST_PORT, le=LAST_PORT, description="A TCP port inside the workspace.")]


@router.get("", response_model=PortList, summary="List ports")
async def read_ports(workspace: LoadedWorkspace, context: ApiContext) -> Response:
    """Return the ports that programs listen on, including loopback only, and the shared ones."""
    listening, unavailable = await _listening(workspace.workspace_id, context)
    shares = shares_in_force(workspace.port_shares, context.now(), context.sharing.sharing)
    items = [
        PortItem(
            port=port,
            process=listening[port].process if port in listening else None,
            listening=port in listening,
            url=_url_of(workspace.workspace_id, port, context),
            share=_share(shares[port]) if port in shares else None,
        )
        for port in sorted(listening.keys() | shares.keys())
    ]
    longest = context.sharing.longest
    return json_response(
        PortList(
            items=items,
            sharing=context.sharing.sharing,
            max_share_seconds=None if longest is None else round(longest.total_seconds()),
            unavailable=unavailable,
        )
    )


@router.put("/{port}/share", response_model=SharedPort, summary="Share a port")
async def share_one_port(
    workspace_id: WorkspacePath, port: PortNumber, form: SharePort, by: ApiActor, context: ApiContext
) -> Response:
    """Let others open this port, but nothing else of the workspace. Sharing it again changes the share."""
    url = _url_of(workspace_id, port, context)
    if url is None:
        raise ApiError(409, Code.CONFLICT, NO_ORIGINS)
    rules = context.sharing
    lifetime = timedelta(seconds=form.expires_in) if form.expires_in is not None else None
    if "expires_in" not in form.model_fields_set:
        lifetime = rules.default_lifetime
    new = await share_port(
        context.database, workspace_id, port, form.audience, lifetime, rules=rules, now=context.now(), by=by
    )
    return json_response(
        SharedPort(
            port=port,
            url=url,
            audience=new.audience,
            created_at=new.created_at,
            expires_at=new.expires_at,
        )
    )


@router.delete("/{port}/share", status_code=204, response_class=Response, summary="Stop sharing a port")
async def unshare_one_port(
    workspace_id: WorkspacePath, port: PortNumber, by: ApiActor, context: ApiContext
) -> Response:
    """Afterwards only the owner can open the port; connections of others end within seconds."""
    await unshare_port(context.database, workspace_id, port, now=context.now(), by=by)
    return Response(status_code=204)


async def _listening(
    workspace_id: WorkspaceId, context: Context
) -> tuple[dict[int, ListeningPort], str | None]:
    """Return the listening ports, or the reason why they cannot be opened."""
    if not context.options.origins.has_ports:
        return {}, NO_ORIGINS
    try:
        found = await context.instances.list_ports(workspace_id)
    except PortUnavailable as error:
        return {}, str(error)
    return {each.port: each for each in found}, None


def _url_of(workspace_id: WorkspaceId, port: int, context: Context) -> str | None:
    origin = context.options.origins.port_origin_of(workspace_id, port)
    return f"{origin}/" if origin else None


def _share(share: PortShare) -> Share:
    return Share.model_validate(share, from_attributes=True)
