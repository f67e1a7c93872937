"""Path, query and header parameters of routes."""

from typing import Annotated, cast
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request

from codehub.db.events import LAST_BIGINT
from codehub.db.views import WorkspaceView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Phase
from codehub.services.errors import WorkspaceNotFound


async def _read_workspace_id(
    workspace_id: Annotated[UUID, Path(description="The id of a workspace.")],
) -> WorkspaceId:
    return WorkspaceId(str(workspace_id))


WorkspacePath = Annotated[WorkspaceId, Depends(_read_workspace_id)]


async def _read_workspace(workspace_id: WorkspacePath, request: Request) -> WorkspaceView:
    view = cast("WorkspaceView", request.state.workspace)
    if not view.is_visible:
        raise WorkspaceNotFound(workspace_id)
    return view


# As the guard loaded it; a route that changes the workspace loads it again.
LoadedWorkspace = Annotated[WorkspaceView, Depends(_read_workspace)]

OperationId = Annotated[int, Path(ge=1, le=LAST_BIGINT, description="The id of an operation.")]
Phases = Annotated[
    list[Phase], Query(alias="phase", description="Only workspaces in this phase; may be repeated.")
]
SearchText = Annotated[
    str | None, Query(alias="q", max_length=100, description="Part of the name or description.")
]
WaitSeconds = Annotated[
    int,
    Query(alias="wait", ge=0, le=60, description="Respond when it has arrived, or after this many seconds."),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Repeating a request with the same key within 24 hours creates nothing new.",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=100, description="The ETag that the change is based on, or `*`."),
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=1_000, description="ETags that the client has already."),
]
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=200, description="Browsers send it when they reconnect."),
]
