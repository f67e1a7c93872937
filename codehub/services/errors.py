"""Why a request cannot be served. The API translates these; nothing here knows HTTP."""

from collections.abc import Sequence
from datetime import datetime

from codehub.db.running import RunningWorkspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import LimitScope
from codehub.domain.states import Operation, Phase


class RequestRefused(Exception):
    """Something that the caller can understand and act on; the message is for a person."""


class WorkspaceNotFound(RequestRefused):
    """There is no such workspace, or it is deleted."""

    def __init__(self, workspace_id: WorkspaceId) -> None:
        super().__init__("There is no such workspace.")
        self.workspace_id = workspace_id


class OperationInProgress(RequestRefused):
    """One operation at a time, run to its end."""

    def __init__(self, operation: Operation, since: datetime | None) -> None:
        super().__init__(f"{operation} is under way; ask again when it has ended.")
        self.operation = operation
        self.since = since


class InvalidState(RequestRefused):
    """What was asked for does not go with the state that the workspace is in."""

    def __init__(self, phase: Phase, message: str) -> None:
        super().__init__(message)
        self.phase = phase


class LimitExceeded(RequestRefused):
    """No place is left; `running` lists the owner's own, because other people's are not theirs to see."""

    def __init__(self, scope: LimitScope, running: Sequence[RunningWorkspace]) -> None:
        whose = "You already run" if scope is LimitScope.USER else "CodeHub already runs"
        super().__init__(f"{whose} as many workspaces as allowed; stop one first.")
        self.scope = scope
        self.running = tuple(running)
