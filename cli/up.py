"""`codehub up`: CodeHub on this machine."""

import typer


def up() -> None:
    """Start CodeHub on this machine."""
    typer.echo("The control plane is not there yet, so there is nothing to start.", err=True)
    raise typer.Exit(1)
