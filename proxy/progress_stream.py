"""Server-sent events about a workspace, for the page that waits for it."""

import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import UTC, datetime

from codehub.db.views import WorkspaceView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation, Phase
from codehub.ports import Progress, ProgressBoard
from codehub.services.convergence import progress_since
from codehub.services.outages import is_outage
from proxy.decisions import is_open
from proxy.pages.words import under_way
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

POLL_SECONDS = 1.0
# Longer silence would make proxies in between give up.
MAX_SILENT_POLLS = 15
KEEP_ALIVE = b": nothing new\n\n"
GONE = {"phase": Phase.DELETED, "needs_person": False, "settled": True, "open": False}
NO_PROGRESS = {"step": None, "done": None, "total": None, "unit": None}


async def follow_progress(
    workspaces: WorkspaceCache, board: ProgressBoard, workspace_id: WorkspaceId
) -> AsyncGenerator[bytes, None]:
    """Yield an event for every change, until the workspace is open or settled."""
    last, silent = b"", 0
    while True:
        event, ends = await _next_event(workspaces, board, workspace_id)
        if event and event != last:
            last, silent = event, 0
            yield event
        elif silent >= MAX_SILENT_POLLS:
            silent = 0
            yield KEEP_ALIVE
        if ends:
            return
        silent += 1
        await workspaces.wait_for_change(workspace_id, POLL_SECONDS)


async def _next_event(
    workspaces: WorkspaceCache, board: ProgressBoard, workspace_id: WorkspaceId
) -> tuple[bytes, bool]:
    """Return the event, and whether it is the last; an empty one while the database does not answer."""
    try:
        workspace = await workspaces.find(workspace_id)
        if workspace is None:
            return _event(GONE), True
        running = is_open(workspace.lifecycle)
        opens = running and await workspaces.find_upstream(workspace) is not None
    except Exception as error:
        if not is_outage(error):
            raise
        return b"", False
    progress = await progress_of(board, workspace.view)
    settled = opens or (workspace.lifecycle.is_settled and not running)
    return _event(_describe(workspace, progress, opens=opens, settled=settled)), settled


async def progress_of(board: ProgressBoard, view: WorkspaceView) -> Progress | None:
    """Return the progress of the current operation, or None if no step is running."""
    if view.operation is Operation.NONE:
        return None
    return await progress_since(board, view.workspace_id, view.op_started_at, datetime.now(UTC))


def _describe(
    workspace: CachedWorkspace, progress: Progress | None, *, opens: bool, settled: bool
) -> dict[str, object]:
    view = workspace.view
    return {
        "phase": view.phase,
        "operation": view.operation,
        "desired_state": view.desired_state,
        "under_way": under_way(view),
        "needs_person": workspace.lifecycle.needs_person,
        "since": view.op_started_at and view.op_started_at.isoformat(),
        **(asdict(progress) if progress else NO_PROGRESS),
        "settled": settled,
        "open": opens,
    }


def _event(document: dict[str, object]) -> bytes:
    return f"event: progress\ndata: {json.dumps(document)}\n\n".encode()
