"""How commands that talk to the API end: an exit code for scripts, one sentence about each for people."""

from collections.abc import Sequence
from enum import IntEnum

import typer


class ExitCode(IntEnum):
    """What a script may ask `$?`."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_SIGNED_IN = 3
    NOT_FOUND = 4
    REFUSED = 5
    LIMIT = 6
    UNAVAILABLE = 7
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed: the workspace needs you, or CodeHub made a mistake",
    ExitCode.USAGE: "usage: a wrong option or value, an ambiguous name, or nobody to answer a question",
    ExitCode.NOT_SIGNED_IN: "not signed in",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.REFUSED: "refused: not allowed, or not in this state",
    ExitCode.LIMIT: "limit: too many workspaces run, or too many requests",
    ExitCode.UNAVAILABLE: "unavailable: CodeHub, or a service that it needs, does not answer",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C; what was asked for goes on",
}

# By the code in the API's error document.
OF_PROBLEM = {
    "INVALID_REQUEST": ExitCode.USAGE,
    "UNAUTHORIZED": ExitCode.NOT_SIGNED_IN,
    "FORBIDDEN": ExitCode.REFUSED,
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
    "TOO_MANY_REQUESTS": ExitCode.LIMIT,
    "INTERNAL_ERROR": ExitCode.FAILED,
    "UPSTREAM_UNAVAILABLE": ExitCode.UNAVAILABLE,
    "DEPENDENCY_UNAVAILABLE": ExitCode.UNAVAILABLE,
}

# Ends the help of every group of commands that talk to the API.
EPILOG = "Exit codes:\n\n" + "\n".join(f"- {code.value}: {meaning}" for code, meaning in MEANINGS.items())


class Failed(Exception):
    """The end of a command: a sentence, more lines about it, and the next step."""

    def __init__(
        self, message: str, next_step: str = "", *, code: ExitCode = ExitCode.FAILED, more: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.code = code
        self.more = tuple(more)

    def tell(self) -> None:
        lines = (self.message, *(f"  {line}" for line in self.more), self.next_step)
        for line in filter(None, lines):
            typer.echo(printable(line), err=True)


def printable(text: str) -> str:
    """Without what would move the cursor of a terminal: some texts were written by programs."""
    return "".join(character if character.isprintable() or character in "\n\t" else "�" for character in text)
