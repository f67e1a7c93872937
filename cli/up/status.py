"""`codehub status`: the processes of CodeHub on this machine."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.formatting import format_duration, now
from cli.stack import data_dir_of
from cli.terminal import new_table
from codehub.embedded.backends import DESCRIPTIONS
from codehub.embedded.child_process import ChildState, ChildStatus
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import RunningStack, read_running_stack
from codehub.settings import load_settings

NOT_RUNNING = 3

STATE_MARKS = {
    ChildState.WAITING: ("·", "dim"),
    ChildState.STARTING: ("…", "cyan"),
    ChildState.RUNNING: ("✔", "green"),
    ChildState.RESTARTING: ("↻", "yellow"),
    ChildState.FAILING: ("✘", "bold red"),
    ChildState.STOPPING: ("…", "yellow"),
    ChildState.STOPPED: ("·", "dim"),
    ChildState.EXTERNAL: ("→", "blue"),
}


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is running on this machine. The exit code is 0 if CodeHub is running and 3 if not."""
    data = data_dir_of(load_settings())
    running = read_running_stack(data)
    if as_json:
        typer.echo(render_json(data, running))
    elif running is None:
        typer.echo(f"CodeHub is not running on {data.root}. Start it with: codehub up")
    else:
        console = Console()
        console.print(render_table(running.parts, now()))
        print_urls(console, running)
        print_backend(console, running)
    if running is None:
        raise typer.Exit(NOT_RUNNING)


def render_table(parts: Sequence[ChildStatus], at: datetime) -> Table:
    table = new_table("", "part", "state", "pid", "address", "for", "")
    for part in parts:
        mark, style = STATE_MARKS[part.state]
        table.add_row(
            Text(mark, style),
            part.title,
            Text(part.state, style),
            str(part.pid or ""),
            part.address,
            "" if part.state is ChildState.EXTERNAL else format_duration(at - part.since),
            Text(part.note, "dim"),
        )
    return table


def render_json(data: DataDir, running: RunningStack | None) -> str:
    content = {
        "running": running is not None,
        "data_dir": str(data.root),
        "pid": running.pid if running else None,
        "parts": [{**asdict(part), "since": part.since.isoformat()} for part in running.parts]
        if running
        else [],
        "urls": running.urls if running else {},
        "instance_backend": running.instance_backend if running else None,
    }
    return json.dumps(content, indent=2)


def print_urls(console: Console, running: RunningStack) -> None:
    for name, url in running.urls.items():
        console.print(f"{name}: {url}", highlight=False)


def print_backend(console: Console, running: RunningStack) -> None:
    if running.instance_backend in DESCRIPTIONS:
        console.print(f"{DESCRIPTIONS[running.instance_backend]}.", highlight=False)
