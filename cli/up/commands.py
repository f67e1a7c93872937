"""`codehub up` and `codehub down`: start and stop CodeHub on this machine."""

import asyncio
import signal
import time
from typing import Annotated

import typer

from cli.stack import data_dir_of
from codehub.embedded.child_process import ChildState
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import RunningStack, is_locked, read_running_stack
from codehub.settings import load_settings

FAILED = 1
POLL_SECONDS = 0.1
STOP_SECONDS = 120.0


def up(
    servers_only: Annotated[
        bool, typer.Option("--servers-only", help="Start the servers without CodeHub's own processes.")
    ] = False,
) -> None:
    """Start CodeHub on this machine and keep it running until Ctrl-C."""
    # Imported here to keep the other commands fast.
    from cli.up.run import run  # noqa: PLC0415
    from codehub.embedded.processes import PROCESSES  # noqa: PLC0415

    code = asyncio.run(run(load_settings(), () if servers_only else PROCESSES))
    raise typer.Exit(code)


def down() -> None:
    """Stop CodeHub on this machine. Running workspaces keep running."""
    data = data_dir_of(load_settings())
    running = read_running_stack(data)
    supervisor = running.supervisor() if running else None
    if supervisor is None:
        typer.echo(f"CodeHub is not running on {data.root}.")
        return
    typer.echo(f"Stopping CodeHub (process {supervisor.pid}) ...")
    supervisor.send_signal(signal.SIGTERM)
    if not _wait_until_stopped(data):
        typer.echo("CodeHub is still stopping. Check again with: codehub status", err=True)
        raise typer.Exit(FAILED)
    typer.echo("Stopped. Your data is kept. Start again with: codehub up")


def _wait_until_stopped(data: DataDir) -> bool:
    """Print each part as it stops; return False after the deadline."""
    deadline = time.monotonic() + STOP_SECONDS
    printed: set[str] = set()
    # The supervisor releases the lock after the last part has stopped; if it dies, the kernel does.
    while is_locked(data):
        if time.monotonic() > deadline:
            return False
        printed |= _print_stopped(read_running_stack(data), printed)
        time.sleep(POLL_SECONDS)
    return True


def _print_stopped(running: RunningStack | None, printed: set[str]) -> set[str]:
    parts = running.parts if running else ()
    stopped = {part.title for part in parts if part.state is ChildState.STOPPED}
    for title in sorted(stopped - printed):
        typer.echo(f"  {title} stopped")
    return stopped
