"""`codehub gameday`: break everything that can be broken, and see that nothing is lost."""

import asyncio
import secrets
import signal
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.errors import ExitCode, Failed
from cli.terminal import console

if TYPE_CHECKING:
    from gameday.options import Options
    from gameday.report.result import GameResult

VIOLATED = 1
SEED_BYTES = 4
# Where no line can be written over, one that tells how far it is comes only now and then.
LINES_BETWEEN = 15


def gameday(
    *,
    minutes: Annotated[float, typer.Option(min=0.05, help="How long things are broken.")] = 3.0,
    seed: Annotated[str, typer.Option(help="Makes people and faults repeat their choices; unset: any.")] = "",
    backend: Annotated[
        Literal["local", "local-docker"],
        typer.Option(metavar="<backend>", help="What runs workspaces: local or local-docker."),
    ] = "local",
    users: Annotated[int, typer.Option(min=1, max=20, help="People who use it meanwhile.")] = 3,
    report: Annotated[
        Path | None, typer.Option(help="Directory for the report as a page and as JSON.", file_okay=False)
    ] = None,
    faults_per_second: Annotated[float, typer.Option(min=0.01, max=10, help="How often, on average.")] = 1.0,
    dockerd: Annotated[
        bool, typer.Option("--dockerd", help="Break the Docker engine too, for everybody on this machine.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the data directory with all logs.")] = False,
) -> None:
    """Start a CodeHub of its own, let people use it, break it all over, and check that nothing was lost.

    Another CodeHub on this machine is not touched. The exit code is 0 if every invariant held.
    """
    _require_gameday()
    # Imported here to keep the other commands fast.
    from gameday.options import Options  # noqa: PLC0415
    from gameday.report.text import print_report  # noqa: PLC0415

    chosen = seed or secrets.token_hex(SEED_BYTES)
    options = Options(minutes, chosen, backend, users, faults_per_second, dockerd)
    with ExitStack() as stack:
        try:
            result = asyncio.run(_play(options, _directory(stack, keep=keep)))
        except asyncio.CancelledError:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    print_report(result, console())
    if report is not None:
        _write(result, report)
    if not result.held:
        raise typer.Exit(VIOLATED)


def _require_gameday() -> None:
    """The game day is a distribution of its own; a production install does not have it."""
    if find_spec("gameday") is None:
        raise Failed("The game day is not installed. Install it with: pip install 'codehub[gameday]'")


def _directory(stack: ExitStack, *, keep: bool) -> Path:
    if not keep:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="codehub-gameday-")))
    kept = Path(tempfile.mkdtemp(prefix="codehub-gameday-"))
    typer.echo(f"Data and logs stay in {kept}", err=True)
    return kept


def _write(result: "GameResult", directory: Path) -> None:
    from gameday.report.writer import write_report  # noqa: PLC0415

    typer.echo(f"Report: {write_report(result, directory)}")


async def _play(options: "Options", directory: Path) -> "GameResult":
    from gameday.run import run_gameday  # noqa: PLC0415

    stop = _stop_signal()
    voice = Voice()
    try:
        return await run_gameday(options, directory, voice.say, voice.show, stop)
    finally:
        voice.end()


def _stop_signal() -> asyncio.Event:
    """Set by the first Ctrl-C; the second one does not even wait for the report."""
    stop, playing = asyncio.Event(), asyncio.current_task()

    def hear() -> None:
        if stop.is_set() and playing is not None:
            playing.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, hear)
    return stop


class Voice:
    """Sentences as they come; in a terminal also a line that is written over."""

    def __init__(self) -> None:
        self._status = console().status("") if sys.stderr.isatty() and sys.stdout.isatty() else None
        self._shown = 0
        if self._status is not None:
            self._status.start()

    def say(self, text: str) -> None:
        typer.echo(text)

    def show(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)
        elif self._shown % LINES_BETWEEN == 0:
            typer.echo(f"  {text}")
        self._shown += 1

    def end(self) -> None:
        if self._status is not None:
            self._status.stop()
