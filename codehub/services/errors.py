"""Why a request cannot be served. The API translates these; nothing here knows HTTP."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from codehub.db.running_slots import RunningWorkspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import LimitScope
from codehub.domain.recovery import RecoverChoice
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
    """What was asked for does not go with the state that the workspace is in.

    `choices` are those that *recover* accepts, where it was asked for another or none.
    """

    def __init__(self, phase: Phase, message: str, choices: Sequence[RecoverChoice] = ()) -> None:
        super().__init__(message)
        self.phase = phase
        self.choices = tuple(choices)


class VersionConflict(RequestRefused):
    """The caller decided on a version that is no longer the present one."""

    def __init__(self, current_version: int) -> None:
        super().__init__("The workspace has changed since you read it; read it again and repeat the request.")
        self.current_version = current_version


class IdempotencyConflict(RequestRefused):
    """The key of an earlier request came with another request."""

    def __init__(self) -> None:
        super().__init__("This idempotency key was used for another request; use a new key for each request.")


class LimitExceeded(RequestRefused):
    """No place is left; `running` lists the owner's own, because other people's are not theirs to see."""

    def __init__(self, scope: LimitScope, running: Sequence[RunningWorkspace]) -> None:
        whose = "You already run" if scope is LimitScope.USER else "CodeHub already runs"
        super().__init__(f"{whose} as many workspaces as allowed; stop one first.")
        self.scope = scope
        self.running = tuple(running)


class SignInRefused(RequestRefused):
    """No such user, a wrong password or a disabled user: nobody is told which."""

    def __init__(self, message: str = "User name or password is wrong; an administrator can help.") -> None:
        super().__init__(message)


class LockedOut(RequestRefused):
    """Too many wrong passwords in a row; the right one is not looked at either."""

    def __init__(self, retry_after: timedelta) -> None:
        seconds = math.ceil(retry_after.total_seconds())
        wait = f"{seconds} seconds" if seconds < 120 else f"{math.ceil(seconds / 60)} minutes"  # noqa: PLR2004
        super().__init__(f"Too many wrong passwords; try again in {wait}.")
        self.retry_after = retry_after


class CredentialNotFound(RequestRefused):
    """The user has no such session or token."""

    def __init__(self) -> None:
        super().__init__("There is no such session or token; it may have been revoked already.")


class TooManyTokens(RequestRefused):
    """A user may hold only so many at once."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"You already have {limit} tokens, which is as many as allowed; revoke one first.")
        self.limit = limit


class InvalidTokenName(RequestRefused):
    """A token has a name that its owner will recognise it by."""

    def __init__(self, longest: int) -> None:
        super().__init__(f"Give the token a name of 1 to {longest} printable characters.")


class InvalidExpiry(RequestRefused):
    """A token cannot have expired before it was made."""

    def __init__(self) -> None:
        super().__init__("Let the token expire in the future, or never.")


class UserNotFound(RequestRefused):
    """There is no such user."""

    def __init__(self) -> None:
        super().__init__("There is no such user; look at the list of users for the right name.")


class UsernameTaken(RequestRefused):
    """Names differ by more than upper and lower case."""

    def __init__(self, username: str) -> None:
        super().__init__(f"There is a user {username} already; choose another name.")
        self.username = username


class InvalidUsername(RequestRefused):
    """A name that nobody can have."""

    def __init__(self) -> None:
        super().__init__(
            "Choose a user name of 1 to 64 letters (a to z), digits, dots, underscores, hyphens and @, "
            "which starts with a letter or a digit."
        )


class InvalidPassword(RequestRefused):
    """A password that nobody can have."""

    def __init__(self, shortest: int, longest: int) -> None:
        super().__init__(f"Choose a password of {shortest} to {longest} characters.")


class LastAdmin(RequestRefused):
    """Without an administrator nobody could make one."""

    def __init__(self) -> None:
        super().__init__("This is the last administrator; make somebody else an administrator first.")
