"""Why a request is refused. The API translates these to HTTP."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from codehub.db.running_slots import RunningWorkspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.disk import StartRefusal
from codehub.domain.limits import LimitScope
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import Operation, Phase
from codehub.formatting import format_size


class RequestRefused(Exception):
    """A refused request; the message tells a person what to do."""


class WorkspaceNotFound(RequestRefused):
    """There is no such workspace, or it is deleted."""

    def __init__(self, workspace_id: WorkspaceId) -> None:
        super().__init__("There is no such workspace.")
        self.workspace_id = workspace_id


class OperationInProgress(RequestRefused):
    """Another operation is in progress."""

    def __init__(self, operation: Operation, since: datetime | None) -> None:
        super().__init__(f"{operation} is in progress; try again when it has finished.")
        self.operation = operation
        self.since = since


class InvalidState(RequestRefused):
    """The state of the workspace does not allow the request.

    `choices` are what *recover* accepts, if the request was to recover.
    """

    def __init__(self, phase: Phase, message: str, choices: Sequence[RecoverChoice] = ()) -> None:
        super().__init__(message)
        self.phase = phase
        self.choices = tuple(choices)


class OwnerDisabled(InvalidState):
    """The owner is disabled, so their workspaces do not start."""

    def __init__(self, phase: Phase) -> None:
        message = "The owner's account is disabled, so the workspace cannot start; enable the account first."
        super().__init__(phase, message)


class VersionConflict(RequestRefused):
    """The request was based on an older version of the workspace."""

    def __init__(self, current_version: int) -> None:
        super().__init__("The workspace has changed since you read it; read it and try again.")
        self.current_version = current_version


class IdempotencyConflict(RequestRefused):
    """A different request used this key earlier."""

    def __init__(self) -> None:
        super().__init__(
            "This idempotency key belongs to a different request; use a new key for each request."
        )


class LimitExceeded(RequestRefused):
    """No running slot is left; `running` lists only the workspaces of the owner."""

    def __init__(self, scope: LimitScope, running: Sequence[RunningWorkspace]) -> None:
        runs = "You are already running" if scope is LimitScope.USER else "CodeHub is already running"
        super().__init__(f"{runs} the maximum number of workspaces; stop one first.")
        self.scope = scope
        self.running = tuple(running)


class DiskLimitExceeded(RequestRefused):
    """The workspace uses more disk space than it may, so it does not start."""

    def __init__(self, used_bytes: int, limit_bytes: int, refusal: StartRefusal) -> None:
        super().__init__(
            f"This workspace uses {format_size(used_bytes)} of disk space and may use "
            f"{format_size(limit_bytes)}, so it does not start. {_WHAT_TO_DO[refusal]}"
        )
        self.used_bytes = used_bytes
        self.limit_bytes = limit_bytes


_WHAT_TO_DO = {
    StartRefusal.OVER: "Ask an administrator for more space, then start it and delete files.",
    StartRefusal.NOT_MEASURED_SINCE: "It is measured again, because it has just stopped; try again in a "
    "minute or two.",
    StartRefusal.ARCHIVED: "Ask an administrator for more space; if you have deleted files since it was "
    "measured, stop it, which restores it and measures it again.",
}


class ImageNotAllowed(RequestRefused):
    """The image is not on the list of the administrators."""

    def __init__(self, image_ref: str, allowed: str) -> None:
        super().__init__(
            f"The image {image_ref} is not allowed; choose one of {allowed}, or ask an administrator "
            "to allow it."
        )


class IdleTimeTooLong(RequestRefused):
    """An idle time is longer than administrators allow."""

    def __init__(self, field: str, longest: timedelta) -> None:
        seconds = round(longest.total_seconds())
        super().__init__(
            f"`{field}` may be at most {seconds} seconds; an administrator can raise this bound."
        )


class SignInRefused(RequestRefused):
    """Unknown user, wrong password or disabled user; the message does not say which."""

    def __init__(
        self, message: str = "User name or password is wrong; ask an administrator for help."
    ) -> None:
        super().__init__(message)


class WrongPassword(RequestRefused):
    """A signed-in user entered a wrong password."""

    def __init__(self) -> None:
        super().__init__("The password is wrong; nothing was changed. Try again.")


class SecondFactorRequired(RequestRefused):
    """The password is right, and the account also needs a code."""

    def __init__(self) -> None:
        super().__init__("Enter the code from your authenticator app, or a recovery code.")


class SecondFactorWrong(SignInRefused):
    """The password is right, but the code is not; counts as a failure."""

    def __init__(self) -> None:
        super().__init__("The code is wrong or was already used; wait for the next one and try again.")


class WrongCode(RequestRefused):
    """The code that should enable an app is wrong."""

    def __init__(self) -> None:
        super().__init__("The code is wrong; check the clock of your phone and enter the next code.")


class AuthenticatorEnabled(RequestRefused):
    """The account has an authenticator app already."""

    def __init__(self) -> None:
        super().__init__("You already use an authenticator app; remove it first.")


class NoPassword(RequestRefused):
    """The account belongs to an identity provider."""

    def __init__(self) -> None:
        super().__init__("You sign in through an identity provider; set up a second factor there.")


class NoAuthenticator(RequestRefused):
    """There is no new app to enable."""

    def __init__(self) -> None:
        super().__init__("There is no new authenticator app; add one first.")


class LockedOut(RequestRefused):
    """Too many wrong passwords in a row; until the lock ends, no password is checked."""

    def __init__(self, retry_after: timedelta) -> None:
        seconds = math.ceil(retry_after.total_seconds())
        wait = f"{seconds} seconds" if seconds < 120 else f"{math.ceil(seconds / 60)} minutes"  # noqa: PLR2004
        super().__init__(f"Too many wrong passwords; try again in {wait}.")
        self.retry_after = retry_after


class CredentialNotFound(RequestRefused):
    """The user has no such session or token."""

    def __init__(self) -> None:
        super().__init__("There is no such session or token; it may already be revoked.")


class TooManyTokens(RequestRefused):
    """The user has the maximum number of tokens."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"You already have {limit} tokens, the maximum; revoke one first.")
        self.limit = limit


class InvalidTokenName(RequestRefused):
    """The name of a token is empty, too long or not printable."""

    def __init__(self, longest: int) -> None:
        super().__init__(f"Give the token a name of 1 to {longest} printable characters.")


class InvalidScope(RequestRefused):
    """The scopes of a new token contradict each other or its owner's role."""


class InvalidNetworkPolicy(RequestRefused):
    """The names of a network policy are invalid, too many, or not allowed in its mode."""


class PortShareRefused(RequestRefused):
    """A port cannot be shared in this way."""


class InvalidExpiry(RequestRefused):
    """The expiry of a new token is not in the future."""

    def __init__(self) -> None:
        super().__init__("Choose an expiry in the future, or none.")


class UserNotFound(RequestRefused):
    """There is no such user."""

    def __init__(self) -> None:
        super().__init__("There is no such user; check the name in the list of users.")


class UsernameTaken(RequestRefused):
    """Another user has the name, in upper or lower case."""

    def __init__(self, username: str) -> None:
        super().__init__(f"There is already a user {username}; choose another name.")
        self.username = username


class SingleAccountOnly(RequestRefused):
    """Workspaces run without a sandbox, so every account would have all rights."""

    def __init__(self) -> None:
        super().__init__(
            "Workspaces run without a sandbox, so there can be only one account. Unset "
            "CODEHUB_LOCAL_UNSAFE_NO_SANDBOX to add others."
        )


class InvalidUsername(RequestRefused):
    """The user name breaks the rules."""

    def __init__(self) -> None:
        super().__init__(
            "Choose a user name of 1 to 64 letters (a to z), digits, dots, underscores, hyphens and @, "
            "starting with a letter or a digit."
        )


class InvalidPassword(RequestRefused):
    """The password is too short or too long."""

    def __init__(self, shortest: int, longest: int) -> None:
        super().__init__(f"Choose a password of {shortest} to {longest} characters.")


class LastAdmin(RequestRefused):
    """The last enabled administrator must stay one."""

    def __init__(self) -> None:
        super().__init__("This is the last administrator; make another user an administrator first.")
