"""How far a workspace has come, told to the page that waits for it."""

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

LOOK_SECONDS = 1.0
# Silence for longer would make something in between give up.
SILENT_LOOKS = 15
STEADY = b": nothing new\n\n"
GONE = {"phase": Phase.DELETED, "needs_person": False, "settled": True, "open": False}
NO_PROGRESS = {"step": None, "done": None, "total": None, "unit": None}


async def follow(
    directory: WorkspaceCache, board: ProgressBoard, workspace_id: WorkspaceId
) -> AsyncGenerator[bytes, None]:
    """Server-sent events until it is open or settled; what does not change is not repeated."""
    last, silent = b"", 0
    while True:
        frame, ends = await _look(directory, board, workspace_id)
        if frame and frame != last:
            last, silent = frame, 0
            yield frame
        elif silent >= SILENT_LOOKS:
            silent = 0
            yield STEADY
        if ends:
            return
        silent += 1
        await directory.wait_for_change(workspace_id, LOOK_SECONDS)


async def _look(
    directory: WorkspaceCache, board: ProgressBoard, workspace_id: WorkspaceId
) -> tuple[bytes, bool]:
    """What to say, and whether that is the end; nothing while the database does not answer."""
    try:
        place = await directory.look(workspace_id)
        if place is None:
            return _frame(GONE), True
        running = is_open(place.lifecycle)
        opens = running and await directory.find_upstream(place) is not None
    except Exception as error:
        if not is_outage(error):
            raise
        return b"", False
    progress = await progress_of(board, place.view)
    settled = opens or (place.lifecycle.is_settled and not running)
    return _frame(_describe(place, progress, opens=opens, settled=settled)), settled


async def progress_of(board: ProgressBoard, view: WorkspaceView) -> Progress | None:
    """Return the progress of the current operation, or None if no step is running."""
    if view.operation is Operation.NONE:
        return None
    return await progress_since(board, view.workspace_id, view.op_started_at, datetime.now(UTC))


def _describe(
    place: CachedWorkspace, progress: Progress | None, *, opens: bool, settled: bool
) -> dict[str, object]:
    view = place.view
    return {
        "phase": view.phase,
        "operation": view.operation,
        "desired_state": view.desired_state,
        "under_way": under_way(view),
        "needs_person": place.lifecycle.needs_person,
        "since": view.op_started_at and view.op_started_at.isoformat(),
        **(asdict(progress) if progress else NO_PROGRESS),
        "settled": settled,
        "open": opens,
    }


def _frame(document: dict[str, object]) -> bytes:
    return f"event: progress\ndata: {json.dumps(document)}\n\n".encode()
