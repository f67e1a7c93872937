"""`codehub up`: CodeHub on this machine, supervised until it is told to stop."""

import asyncio
from typing import Annotated

import typer

from codehub.settings import load_settings


def up(
    servers_only: Annotated[
        bool, typer.Option("--servers-only", help="Start the servers, but none of CodeHub's own processes.")
    ] = False,
) -> None:
    """Start CodeHub on this machine and keep it running until Ctrl-C."""
    # Here, because the other commands shall not load half of the system before they say a word.
    from cli.up.run import run  # noqa: PLC0415
    from codehub.embedded.processes import PROCESSES  # noqa: PLC0415

    code = asyncio.run(run(load_settings(), () if servers_only else PROCESSES))
    raise typer.Exit(code)
