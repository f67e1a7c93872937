"""Options and arguments that several commands share, and shell completion of workspace names."""

from typing import Annotated

import typer

from cli.errors import CommandError

COMPLETION_SECONDS = 2.0


def complete_workspaces(incomplete: str) -> list[str]:
    return _complete(incomplete, deleted=False)


def complete_deleted(incomplete: str) -> list[str]:
    return _complete(incomplete, deleted=True)


def _complete(incomplete: str, *, deleted: bool) -> list[str]:
    """Return matching names, or nothing if CodeHub does not respond quickly."""
    # Imported here because every command defines completions, but few invocations complete anything.
    from cli.client import connect  # noqa: PLC0415

    try:
        with connect(None) as client:
            client.set_timeout(COMPLETION_SECONDS)
            found = client.get("/workspaces", q=incomplete, deleted=deleted, limit=200)["items"]
    except CommandError:
        return []
    return sorted({each["name"] for each in found if each["name"].startswith(incomplete)})


WorkspaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="Its name or id.", autocompletion=complete_workspaces, show_default=False
    ),
]
DeletedWorkspaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="Its name or id.", autocompletion=complete_deleted, show_default=False
    ),
]
Search = Annotated[
    str | None, typer.Option("--search", "-s", metavar="TEXT", help="Part of a name or description.")
]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from the first line of standard input.")
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The CodeHub to use. Default: CODEHUB_URL, the last login, or CodeHub on this machine.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's JSON document.")]
Wait = Annotated[
    bool | None,
    typer.Option(
        "--wait/--no-wait",
        help="Wait until it is done. This is the default on a terminal.",
        show_default=False,
    ),
]
Follow = Annotated[
    bool | None,
    typer.Option(
        "--follow/--no-follow",
        "-f",
        help="Keep printing new events. This is the default on a terminal.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
