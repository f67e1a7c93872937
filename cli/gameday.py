"""`codehub gameday`: break a CodeHub at random and check that nothing is lost."""

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

from cli.errors import CommandError, ExitCode
from cli.terminal import console

if TYPE_CHECKING:
    from gameday.options import Options
    from gameday.report.result import GameResult

VIOLATED = 1
SEED_BYTES = 4
# Without a terminal, print only every n-th progress line.
PROGRESS_INTERVAL = 15


def gameday(
    *,
    minutes: Annotated[float, typer.Option(min=0.05, help="How long to inject faults.")] = 3.0,
    seed: Annotated[str, typer.Option(help="Repeats the choices of a game. Default: random.")] = "",
    backend: Annotated[
        Literal["local", "local-docker", "k8s"],
        typer.Option(metavar="<backend>", help="What runs workspaces: local, local-docker or k8s."),
    ] = "local",
    users: Annotated[int, typer.Option(min=1, max=20, help="Number of simulated users.")] = 3,
    report: Annotated[
        Path | None, typer.Option(help="Directory for the report as HTML and JSON.", file_okay=False)
    ] = None,
    faults_per_second: Annotated[
        float, typer.Option(min=0.01, max=10, help="Average number of faults per second.")
    ] = 1.0,
    dockerd: Annotated[
        bool,
        typer.Option("--dockerd", help="Break the Docker engine too, which affects all of its containers."),
    ] = False,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Command that breaks and repairs the cluster of k8s, which must be on this machine: "
            "python -m testkit.kubernetes in CodeHub's repository.",
        ),
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the data directory with all logs.")] = False,
) -> None:
    """Start a separate CodeHub, simulate users, inject faults, and check that nothing was lost.

    Another CodeHub on this machine is not affected. The exit code is 0 if every invariant held.
    """
    _require_gameday()
    _require_cluster(backend, cluster)
    # Imported here to keep the other commands fast.
    from gameday.options import Options  # noqa: PLC0415
    from gameday.report.text import print_report  # noqa: PLC0415

    chosen = seed or secrets.token_hex(SEED_BYTES)
    options = Options(minutes, chosen, backend, users, faults_per_second, dockerd, cluster)
    with ExitStack() as cleanup:
        try:
            result = asyncio.run(_play(options, _data_directory(cleanup, keep=keep)))
        except asyncio.CancelledError:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    print_report(result, console())
    if report is not None:
        _write_report(result, report)
    if not result.held:
        raise typer.Exit(VIOLATED)


def _require_gameday() -> None:
    """The game day is a separate distribution; a production install does not have it."""
    if find_spec("gameday") is None:
        raise CommandError("The game day is not installed. Install it with: pip install 'codehub[gameday]'")


def _require_cluster(backend: str, cluster: str) -> None:
    """A game breaks the servers of a cluster, so it needs a program that may do that."""
    if (backend == "k8s") is not bool(cluster):
        raise CommandError(
            "--backend k8s and --cluster belong together: give both, or none.", code=ExitCode.USAGE
        )


def _data_directory(cleanup: ExitStack, *, keep: bool) -> Path:
    if not keep:
        return Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="codehub-gameday-")))
    directory = Path(tempfile.mkdtemp(prefix="codehub-gameday-"))
    typer.echo(f"Data and logs are kept in {directory}", err=True)
    return directory


def _write_report(result: "GameResult", directory: Path) -> None:
    from gameday.report.writer import write_report  # noqa: PLC0415

    typer.echo(f"Report: {write_report(result, directory)}")


async def _play(options: "Options", directory: Path) -> "GameResult":
    from gameday.run import run_gameday  # noqa: PLC0415
    from gameday.stage.cluster import NoCluster  # noqa: PLC0415
    from gameday.stage.ide import CannotBuild, NoPython  # noqa: PLC0415

    stop = _stop_on_signal()
    output = ProgressOutput()
    try:
        return await run_gameday(options, directory, output.say, output.show, stop)
    except (NoCluster, NoPython, CannotBuild) as error:
        raise CommandError(str(error)) from error
    finally:
        output.close()


def _stop_on_signal() -> asyncio.Event:
    """Return an event that the first Ctrl-C sets; the second one cancels the game without a report."""
    stop, playing = asyncio.Event(), asyncio.current_task()

    def handle() -> None:
        if stop.is_set() and playing is not None:
            playing.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, handle)
    return stop


class ProgressOutput:
    """Prints messages; on a terminal, also a progress line that is updated in place."""

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
        elif self._shown % PROGRESS_INTERVAL == 0:
            typer.echo(f"  {text}")
        self._shown += 1

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
