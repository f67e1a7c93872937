"""Workspaces: list, create, read, change, delete, recover, undelete."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from api import queries
from api.context import ApiContext
from api.errors import ApiError
from api.pagination import Cursor, PageSize
from api.parameters import (
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    LoadedWorkspace,
    Phases,
    SearchText,
    WaitSeconds,
    WorkspacePath,
)
from api.request_bodies import hash_request
from api.responses import json_response, workspace_page_response, workspace_response
from api.schemas.errors import Code
from api.schemas.workspaces import (
    CreateWorkspace,
    Deletion,
    PatchWorkspace,
    Recover,
    Workspace,
    WorkspacePage,
)
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import ApiActor, GuardedRoute
from api.serializers import etag_of, new_workspace, serialize
from codehub.services.convergence import wait_until_settled
from codehub.services.deletion import delete_workspace, undelete_workspace
from codehub.services.errors import WorkspaceNotFound
from codehub.services.recovery import request_recovery
from codehub.services.workspaces import create_once, patch_workspace

router = APIRouter(prefix=f"{API}/workspaces", route_class=GuardedRoute, tags=["workspaces"])

LAST_VERSION = 2**63 - 1
PURGED = "The workspace is being deleted without a last archive. This cannot be undone."
UNDELETABLE = "The workspace is being deleted after a last archive. Undelete restores it while that exists."
HALTED = (
    "The deletion failed and is waiting for you: recover to try again, or delete with purge=true, without a "
    "last archive."
)


@router.get("", response_model=WorkspacePage, summary="List my workspaces")
async def list_workspaces(
    caller: SignedInCaller,
    context: ApiContext,
    phases: Phases = [],  # noqa: B006 (FastAPI copies it)
    search: SearchText = None,
    *,
    deleted: Annotated[
        bool, Query(description="Deleted workspaces instead; some of them can be undeleted.")
    ] = False,
    cursor: Cursor = None,
    limit: PageSize = 50,
) -> Response:
    """Return workspaces, newest first."""
    page = await queries.list_workspaces(
        context,
        caller.user_id,
        phases,
        search,
        deleted=deleted,
        cursor=cursor,
        limit=limit,
        only=caller.workspace_ids,
    )
    return workspace_page_response(page, context)


@router.post("", status_code=201, response_model=Workspace, summary="Create a workspace")
async def create_workspace(
    form: CreateWorkspace,
    caller: SignedInCaller,
    context: ApiContext,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The workspace starts at once unless `desired_state` says otherwise; follow it with live events."""
    new = new_workspace(form, caller, context)
    context.rules.check_new(new)
    workspace_id = await create_once(
        context.database,
        new,
        idempotency_key=idempotency_key,
        request_hash=hash_request(form),
        context=context.request_by(caller),
    )
    context.waker.wake(workspace_id, str(caller.user_id))
    view = await queries.load_workspace(context, workspace_id)
    return workspace_response(view, context, 201, Location=f"{API}/workspaces/{workspace_id}")


@router.get(
    "/{workspace_id}",
    response_model=Workspace,
    responses={304: {"description": "Not changed since the ETag."}},
    summary="Read a workspace",
)
async def read_workspace(
    workspace: LoadedWorkspace, context: ApiContext, if_none_match: IfNoneMatch = None
) -> Response:
    """The ETag changes with everything visible except the time of last use."""
    etag = etag_of(workspace.version)
    if if_none_match is not None and _matches(if_none_match, etag):
        return Response(status_code=304, headers={"ETag": etag})
    return workspace_response(workspace, context)


@router.patch("/{workspace_id}", response_model=Workspace, summary="Change a workspace")
async def change_workspace(
    workspace_id: WorkspacePath,
    form: PatchWorkspace,
    caller: SignedInCaller,
    context: ApiContext,
    *,
    if_match: IfMatch = None,
    wait: WaitSeconds = 0,
) -> Response:
    """Change all fields or none. Changing `desired_state` gets 409 while an operation runs."""
    changes_state = "desired_state" in form.model_fields_set
    context.rules.check_change(form.metadata_sent)
    await patch_workspace(
        context.database,
        workspace_id,
        form.metadata_sent,
        form.desired_state.desired if changes_state else None,
        expected_version=_expected_version(if_match),
        context=context.request_by(caller),
    )
    view = await queries.load_workspace(context, workspace_id)
    if changes_state:
        context.waker.wake(workspace_id, str(view.owner_user_id))
    if wait:
        timeout = timedelta(seconds=wait)
        settled = await wait_until_settled(context.database, workspace_id, timeout=timeout)
        if settled is None:
            raise WorkspaceNotFound(workspace_id)
        view = settled
    return workspace_response(view, context)


@router.delete("/{workspace_id}", status_code=202, response_model=Deletion, summary="Delete a workspace")
async def remove_workspace(
    workspace_id: WorkspacePath,
    caller: SignedInCaller,
    context: ApiContext,
    *,
    purge: Annotated[bool, Query(description="Make no last archive. This cannot be undone.")] = False,
) -> Response:
    """Delete a workspace after a last archive, so that it can be undeleted; from ERROR, without an archive.

    Repeating the request changes nothing. With `purge`, a deletion that runs or failed continues without an
    archive.
    """
    purged = await delete_workspace(
        context.database, workspace_id, purge=purge, context=context.request_by(caller)
    )
    # It may be DELETED already: a sweep can be faster than this request.
    view = await queries.load_workspace(context, workspace_id)
    context.waker.wake(workspace_id, str(view.owner_user_id))
    message = PURGED if purged else HALTED if view.lifecycle.needs_person else UNDELETABLE
    return json_response(Deletion(workspace=serialize(view, context), purge=purged, message=message), 202)


@router.post(
    "/{workspace_id}/recover", status_code=202, response_model=Workspace, summary="Recover from an error"
)
async def recover(
    workspace_id: WorkspacePath,
    caller: SignedInCaller,
    by: ApiActor,
    context: ApiContext,
    form: Recover | None = None,
) -> Response:
    """Observe again and continue. For lost or damaged data, send one of the `recover.choices`."""
    await request_recovery(
        context.database,
        workspace_id,
        form.choice if form else None,
        archive=form.archive if form else None,
        context=context.request_by(caller, by.address),
    )
    view = await queries.load_workspace(context, workspace_id)
    context.waker.wake(workspace_id, str(view.owner_user_id))
    return workspace_response(view, context, 202)


@router.post(
    "/{workspace_id}/undelete", status_code=202, response_model=Workspace, summary="Undelete a workspace"
)
async def undelete(workspace_id: WorkspacePath, caller: SignedInCaller, context: ApiContext) -> Response:
    """The workspace comes back as ARCHIVED, provided that its last archive still exists."""
    await undelete_workspace(context.database, workspace_id, context=context.request_by(caller))
    view = await queries.load_workspace(context, workspace_id)
    context.waker.wake(workspace_id, str(view.owner_user_id))
    return workspace_response(view, context, 202)


def _expected_version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    digits = if_match.strip().strip('"')
    if not digits.isascii() or not digits.isdecimal() or int(digits) > LAST_VERSION:
        message = "If-Match is not an ETag of this workspace. Read the workspace again."
        raise ApiError(412, Code.PRECONDITION_FAILED, message)
    return int(digits)


def _matches(if_none_match: str, etag: str) -> bool:
    """Weak ETags match too: a proxy that compresses a response makes its ETag weak."""
    return bool({"*", etag} & {each.strip().removeprefix("W/") for each in if_none_match.split(",")})
