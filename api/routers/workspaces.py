"""Workspaces: list, create, read, change, delete."""

import hashlib
from datetime import timedelta
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Header, Query, Response

from api.context import Context, Provided
from api.errors import ApiError
from api.parameters import SeenWorkspace, WorkspacePath, load_again
from api.responses import decode_position, encode_position, json_response
from api.schemas.errors import Code
from api.schemas.workspaces import (
    CreateWorkspace,
    Deletion,
    PatchWorkspace,
    Workspace,
    WorkspacePage,
)
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute
from api.serializers import etag_of, serialize
from codehub.db.views import ViewFilter, WorkspaceView, list_views
from codehub.db.workspaces import Metadata, NewWorkspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import volume_name
from codehub.domain.states import Phase
from codehub.services.convergence import wait_until_settled
from codehub.services.deletion import delete_workspace
from codehub.services.errors import WorkspaceNotFound
from codehub.services.identity import Caller
from codehub.services.workspaces import create_once, patch_workspace

router = APIRouter(prefix=f"{API}/workspaces", route_class=GuardedRoute, tags=["workspaces"])

PageSize = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")]
Phases = Annotated[list[Phase], Query(alias="phase", description="Only these; may be given several times.")]
SearchText = Annotated[
    str | None, Query(alias="q", max_length=100, description="Part of the name or description.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="A repetition with the same key within 24 h creates nothing more.",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=100, description="The ETag that the change is meant for, or `*`."),
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=1_000, description="ETags that the caller knows already."),
]
WaitSeconds = Annotated[
    int, Query(alias="wait", ge=0, le=60, description="Answer when it has arrived, or after so many seconds.")
]
LAST_VERSION = 2**63 - 1


@router.get("", response_model=WorkspacePage, summary="My workspaces")
async def list_workspaces(
    caller: SignedInCaller,
    context: Provided,
    phases: Phases = [],  # noqa: B006 (FastAPI copies it)
    search: SearchText = None,
    *,
    deleted: Annotated[
        bool, Query(description="Those that are deleted, of which some can be taken back.")
    ] = False,
    cursor: Cursor = None,
    limit: PageSize = 50,
) -> Response:
    """Newest first."""
    wanted = ViewFilter(caller.user_id, frozenset(phases), clean_search(search), deleted)
    return await answer_page(context, wanted, cursor, limit)


@router.post("", status_code=201, response_model=Workspace, summary="Create a workspace")
async def create_workspace(
    form: CreateWorkspace, caller: SignedInCaller, context: Provided, idempotency_key: IdempotencyKey = None
) -> Response:
    """It starts at once unless another `desired_state` is asked for; follow it with GET or the events."""
    workspace_id = await create_once(
        context.database,
        _new_workspace(form, caller, context),
        idempotency_key=idempotency_key,
        request_hash=hashlib.sha256(form.model_dump_json().encode()).digest(),
        context=context.request_by(caller),
    )
    context.waker.wake(workspace_id, str(caller.user_id))
    view = await load_again(context, workspace_id)
    return answer_workspace(view, context, 201, Location=f"{API}/workspaces/{workspace_id}")


@router.get(
    "/{workspace_id}",
    response_model=Workspace,
    responses={304: {"description": "It is still as the ETag says."}},
    summary="Read a workspace",
)
async def read_workspace(
    workspace: SeenWorkspace, context: Provided, if_none_match: IfNoneMatch = None
) -> Response:
    """The ETag changes with everything that one can see, but not with the time of the last use."""
    etag = etag_of(workspace.version)
    if if_none_match is not None and _knows(if_none_match, etag):
        return Response(status_code=304, headers={"ETag": etag})
    return answer_workspace(workspace, context)


@router.patch("/{workspace_id}", response_model=Workspace, summary="Change a workspace")
async def change_workspace(
    workspace_id: WorkspacePath,
    form: PatchWorkspace,
    caller: SignedInCaller,
    context: Provided,
    *,
    if_match: IfMatch = None,
    wait: WaitSeconds = 0,
) -> Response:
    """All of it or nothing. A change of `desired_state` answers 409 while an operation runs."""
    sent = form.model_fields_set
    await patch_workspace(
        context.database,
        workspace_id,
        form.metadata_sent,
        form.desired_state.desired if "desired_state" in sent else None,
        expected_version=_expected_version(if_match),
        context=context.request_by(caller),
    )
    view = await load_again(context, workspace_id)
    if "desired_state" in sent:
        context.waker.wake(workspace_id, str(view.owner_user_id))
    if wait:
        view = await _wait(context, workspace_id, wait)
    return answer_workspace(view, context)


@router.delete("/{workspace_id}", status_code=202, response_model=Deletion, summary="Delete a workspace")
async def remove_workspace(
    workspace_id: WorkspacePath,
    caller: SignedInCaller,
    context: Provided,
    *,
    purge: Annotated[bool, Query(description="Make no last archive; this cannot be taken back.")] = False,
) -> Response:
    """It makes a last archive on the way, so that undelete works for a while; a broken one cannot.

    Repeating it changes nothing; `purge` makes a deletion that is under way or failed go on without one.
    """
    purged = await delete_workspace(
        context.database, workspace_id, purge=purge, context=context.request_by(caller)
    )
    # A sweep may have been quicker than we are: then it is DELETED already.
    view = await load_again(context, workspace_id)
    context.waker.wake(workspace_id, str(view.owner_user_id))
    message = PURGED if purged else HALTED if view.lifecycle.needs_person else KEPT_FOR_A_WHILE
    return json_response(Deletion(workspace=serialize(view, context), purge=purged, message=message), 202)


PURGED = "It is being deleted without a last archive: this cannot be taken back."
KEPT_FOR_A_WHILE = "It is being deleted after a last archive; until that is removed, undelete brings it back."

HALTED = "Its deletion failed and waits for you: recover tries it again, purge=true makes no last archive."


async def answer_page(context: Context, wanted: ViewFilter, cursor: str | None, limit: int) -> Response:
    async with context.reading.transaction() as session:
        page = await list_views(session, wanted, after=decode_position(cursor), limit=limit)
    items = [serialize(view, context) for view in page.items]
    return json_response(WorkspacePage(items=items, next_cursor=encode_position(page.next)))


def answer_workspace(view: WorkspaceView, context: Context, status: int = 200, **headers: str) -> Response:
    return json_response(serialize(view, context), status, ETag=etag_of(view.version), **headers)


def clean_search(search: str | None) -> str | None:
    """PostgreSQL knows no NUL in a text, so nothing contains one; and nothing is no filter."""
    return search.replace("\0", "\ufffd") if search else None


def _new_workspace(form: CreateWorkspace, caller: Caller, context: Context) -> NewWorkspace:
    workspace_id = WorkspaceId(str(uuid4()))
    return NewWorkspace(
        workspace_id=workspace_id,
        owner_user_id=caller.user_id,
        metadata=Metadata(**form.metadata_sent),
        image_ref=form.image_ref or context.options.default_image_ref,
        instance_backend=context.options.instance_backend,
        storage_backend=context.options.storage_backend,
        home_store_key=volume_name(workspace_id),
        desired_state=form.desired_state.desired,
    )


def _expected_version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    digits = if_match.strip().strip('"')
    if not digits.isascii() or not digits.isdecimal() or int(digits) > LAST_VERSION:
        raise ApiError(412, Code.PRECONDITION_FAILED, "If-Match is no ETag of this workspace; read it again.")
    return int(digits)


def _knows(if_none_match: str, etag: str) -> bool:
    """Weak ones count: whoever compresses an answer on its way makes its ETag weak."""
    return bool({"*", etag} & {each.strip().removeprefix("W/") for each in if_none_match.split(",")})


async def _wait(context: Context, workspace_id: WorkspaceId, seconds: int) -> WorkspaceView:
    view = await wait_until_settled(context.database, workspace_id, timeout=timedelta(seconds=seconds))
    if view is None:
        raise WorkspaceNotFound(workspace_id)
    return view
