"""How far an operation is, as people are told."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress, ProgressBoard

# A step that runs posts its progress every second, so this much silence means that none runs: it waits for a
# free slot, or for its next attempt.
SILENCE = timedelta(seconds=5)
WAITING = Progress("waiting for its turn", unit="steps")
# Those that one would not expect from the name of the operation, so people are told.
NAMED_STEPS = frozenset({"pulling the image", "unpacking the image", WAITING.step})


async def progress_since(
    board: ProgressBoard, workspace_id: WorkspaceId, since: datetime | None, now: datetime
) -> Progress | None:
    """How far the operation that began then is; None between two steps, or while the board is unavailable."""
    return shown_progress(await board.read([workspace_id]), workspace_id, since, now)


def shown_progress(
    posted: Mapping[WorkspaceId, Progress] | None,
    workspace_id: WorkspaceId,
    since: datetime | None,
    now: datetime,
) -> Progress | None:
    """What was posted; if nothing was, that an operation begun a while ago waits for its turn."""
    if posted is None:
        return None
    waits = since is not None and now - since > SILENCE
    return posted.get(workspace_id, WAITING if waits else None)
