"""Options and arguments that many commands have."""

from typing import Annotated

import typer

from cli.errors import Failed

PATIENCE_SECONDS = 2.0


def complete_workspaces(incomplete: str) -> list[str]:
    return _names(incomplete, deleted=False)


def complete_deleted(incomplete: str) -> list[str]:
    return _names(incomplete, deleted=True)


def _names(incomplete: str, *, deleted: bool) -> list[str]:
    # Here, because every command defines completions and few complete anything.
    from cli.client import connect  # noqa: PLC0415

    try:
        with connect(None) as client:
            client.limit_patience(PATIENCE_SECONDS)
            found = client.get("/workspaces", q=incomplete, deleted=deleted, limit=200)["items"]
    except Failed:
        return []
    return sorted({each["name"] for each in found if each["name"].startswith(incomplete)})


Target = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="Its name or id.", autocompletion=complete_workspaces, show_default=False
    ),
]
DeletedTarget = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="Its name or id.", autocompletion=complete_deleted, show_default=False
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The CodeHub to talk to; else CODEHUB_URL, that of the last sign-in, or this machine's.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's document.")]
Wait = Annotated[
    bool | None,
    typer.Option(
        "--wait/--no-wait",
        help="Wait until it has arrived; the default on a terminal.",
        show_default=False,
    ),
]
Follow = Annotated[
    bool | None,
    typer.Option(
        "--follow/--no-follow",
        "-f",
        help="Stay, and print what comes; the default on a terminal.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
