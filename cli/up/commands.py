"""`codehub up`: CodeHub on this machine, supervised until it is told to stop."""

import asyncio
import signal
import time
from typing import Annotated

import typer

from codehub.embedded.child_process import ChildState
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import RunningStack, is_locked, read_running_stack
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


FAILED = 1
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 120.0


def down() -> None:
    """Stop CodeHub on this machine; running workspaces go on."""
    data = DataDir(load_settings().general.data_dir.absolute())
    running = read_running_stack(data)
    supervisor = running.supervisor() if running else None
    if supervisor is None:
        typer.echo(f"CodeHub does not run on {data.root}.")
        return
    typer.echo(f"Stopping CodeHub (process {supervisor.pid}) ...")
    supervisor.send_signal(signal.SIGTERM)
    if not _wait(data):
        typer.echo("It is still stopping; look again with: codehub status", err=True)
        raise typer.Exit(FAILED)
    typer.echo("Stopped. The data stay; start again with: codehub up")


def _wait(data: DataDir) -> bool:
    """Say what stops as it stops; False if it takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    said: set[str] = set()
    # The lock is let go after the last part has stopped, or by the kernel.
    while is_locked(data):
        if time.monotonic() > deadline:
            return False
        said |= _say_stopped(read_running_stack(data), said)
        time.sleep(LOOK_SECONDS)
    return True


def _say_stopped(running: RunningStack | None, said: set[str]) -> set[str]:
    parts = running.parts if running else ()
    stopped = {part.title for part in parts if part.state is ChildState.STOPPED}
    for title in sorted(stopped - said):
        typer.echo(f"  {title} stopped")
    return stopped
