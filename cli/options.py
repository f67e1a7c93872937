"""Options and arguments that many commands have."""

from typing import Annotated

import typer

from cli.workspace.completion import complete_deleted, complete_workspaces

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
