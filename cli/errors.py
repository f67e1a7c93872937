"""Errors of commands: a message and the next step for people, an exit code for scripts."""

from collections.abc import Sequence
from enum import IntEnum

import typer

from cli.control_characters import printable


class ExitCode(IntEnum):
    """How a command that talks to the API ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_SIGNED_IN = 3
    NOT_FOUND = 4
    REFUSED = 5
    LIMIT = 6
    UNAVAILABLE = 7
    INTERRUPTED = 130


EXIT_CODE_HELP = {
    ExitCode.OK: "success",
    ExitCode.FAILED: "failure: the workspace needs your decision, or CodeHub has a bug",
    ExitCode.USAGE: "usage error: wrong option or value, ambiguous name, or no terminal for a question",
    ExitCode.NOT_SIGNED_IN: "not signed in",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.REFUSED: "refused: not allowed, or not possible in this state",
    ExitCode.LIMIT: "limit: too many running workspaces, or too many requests",
    ExitCode.UNAVAILABLE: "unavailable: CodeHub or a service that it needs does not respond",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C; the requested operation continues",
}

# By the code in the API's error document.
API_EXIT_CODES = {
    "INVALID_REQUEST": ExitCode.USAGE,
    "UNAUTHORIZED": ExitCode.NOT_SIGNED_IN,
    "SECOND_FACTOR_REQUIRED": ExitCode.NOT_SIGNED_IN,
    "FORBIDDEN": ExitCode.REFUSED,
    "REAUTHENTICATION_REQUIRED": ExitCode.REFUSED,
    "WRONG_PASSWORD": ExitCode.REFUSED,
    "CSRF_TOKEN_MISSING": ExitCode.FAILED,
    "NOT_FOUND": ExitCode.NOT_FOUND,
    "WORKSPACE_NOT_FOUND": ExitCode.NOT_FOUND,
    "METHOD_NOT_ALLOWED": ExitCode.FAILED,
    "INVALID_STATE": ExitCode.REFUSED,
    "OPERATION_IN_PROGRESS": ExitCode.REFUSED,
    "CONFLICT": ExitCode.REFUSED,
    "PRECONDITION_FAILED": ExitCode.REFUSED,
    "BODY_TOO_LARGE": ExitCode.USAGE,
    "UNSUPPORTED_MEDIA_TYPE": ExitCode.FAILED,
    "LIMIT_EXCEEDED": ExitCode.LIMIT,
    "DISK_LIMIT_EXCEEDED": ExitCode.LIMIT,
    "TOO_MANY_REQUESTS": ExitCode.LIMIT,
    "INTERNAL_ERROR": ExitCode.FAILED,
    "UPSTREAM_UNAVAILABLE": ExitCode.UNAVAILABLE,
    "DEPENDENCY_UNAVAILABLE": ExitCode.UNAVAILABLE,
}

# The last part of the help of every command group that talks to the API.
EPILOG = "Exit codes:\n\n" + "\n".join(f"- {code.value}: {text}" for code, text in EXIT_CODE_HELP.items())


class CommandError(Exception):
    """Ends a command with a message, optional details and the next step."""

    def __init__(
        self,
        message: str,
        next_step: str = "",
        *,
        code: ExitCode = ExitCode.FAILED,
        details: Sequence[str] = (),
        api_code: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.code = code
        self.details = tuple(details)
        # The error code of the API, if the error came from it.
        self.api_code = api_code

    def show(self) -> None:
        lines = (self.message, *(f"  {line}" for line in self.details), self.next_step)
        for line in filter(None, lines):
            typer.echo(printable(line), err=True)
