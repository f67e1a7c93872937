"""`codehub status`: what runs on this machine."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from codehub.embedded.backends import DESCRIPTIONS
from codehub.embedded.child_process import ChildState, ChildStatus
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import RunningStack, read_running_stack
from codehub.settings import load_settings

NOT_RUNNING = 3

LOOKS = {
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
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show what runs on this machine; the exit code is 0 if CodeHub runs and 3 if not."""
    data = DataDir(load_settings().general.data_dir.absolute())
    running = read_running_stack(data)
    if as_json:
        typer.echo(render_json(data, running))
    elif running is None:
        typer.echo(f"CodeHub does not run on {data.root}. Start it with: codehub up")
    else:
        console = Console()
        console.print(render_table(running.parts, datetime.now(UTC)))
        print_urls(console, running)
        print_backend(console, running)
    if running is None:
        raise typer.Exit(NOT_RUNNING)


def render_table(parts: Sequence[ChildStatus], now: datetime) -> Table:
    table = Table("", "part", "state", "pid", "address", "since", "", box=box.SIMPLE_HEAD, show_edge=False)
    for part in parts:
        mark, style = LOOKS[part.state]
        table.add_row(
            Text(mark, style),
            part.title,
            Text(part.state, style),
            str(part.pid or ""),
            part.address,
            "" if part.state is ChildState.EXTERNAL else describe_duration(now - part.since),
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


def describe_duration(duration: timedelta) -> str:
    """The two greatest units: `3 d 4 h`, `5 min 2 s`, `0.8 s`."""
    seconds = max(duration.total_seconds(), 0.0)
    if seconds < 10:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {int(seconds % 60)} s" if minutes else f"{int(seconds)} s"
