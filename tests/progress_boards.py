"""What is on a board of progress."""

from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress, ProgressBoard


async def posted(board: ProgressBoard, workspace_id: WorkspaceId) -> Progress | None:
    """The latest of one workspace; None also while the board is unavailable."""
    found = await board.read([workspace_id])
    return found.get(workspace_id) if found else None
