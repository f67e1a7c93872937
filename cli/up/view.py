"""What `codehub up` shows: a live table in a terminal, plain lines anywhere else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from time import monotonic

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.up.status import LOOKS, describe_duration
from codehub.embedded.child_process import ChildState, ChildStatus, StartFailed, last_lines
from codehub.embedded.data_dir import DataDir

SHOWN_LOG_LINES = 15
# Said in a plain log; the states between them are noise there.
WORTH_A_LINE = {
    ChildState.RUNNING,
    ChildState.RESTARTING,
    ChildState.FAILING,
    ChildState.STOPPED,
    ChildState.EXTERNAL,
}


class View:
    """Everything that `codehub up` tells a person."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self._parts: dict[str, ChildStatus] = {}
        self._live = False
        self._began = monotonic()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """The live table, while things start."""
        if not self.console.is_terminal:
            yield
            return
        self._live = True
        with Live(get_renderable=self._table, console=self.console, refresh_per_second=10):
            try:
                yield
            finally:
                self._live = False

    def show(self, status: ChildStatus) -> None:
        before = self._parts.get(status.name)
        self._parts[status.name] = status
        changed = before is None or (before.state, before.note) != (status.state, status.note)
        if not self._live and changed and status.state in WORTH_A_LINE:
            self._print_line(status)

    def say(self, text: str) -> None:
        # As it is: what programs said may contain brackets, and a sentence is not cut into lines for a log.
        self.console.print(Text(text), soft_wrap=True)

    def show_password(self, password: str) -> None:
        self.console.print("The first account, shown only this once:")
        self.console.print(Text.assemble("  user      ", ("admin", "bold")))
        self.console.print(Text.assemble("  password  ", (password, "bold")))

    def ready(self, urls: Mapping[str, str], data: DataDir) -> None:
        self.console.print(
            Text.assemble(("CodeHub is ready", "bold green"), f" after {monotonic() - self._began:.1f} s.")
        )
        for name, url in urls.items():
            self.console.print(f"  {name}: {url}")
        self.console.print(f"  Data and logs: {data.root}", soft_wrap=True)
        self.console.print("Ctrl-C stops it; so does: codehub down")

    def explain(self, error: Exception) -> None:
        """The reason; for a child that did not start also the end of its log and how to go on."""
        self.console.print(Text(str(error), "bold red"), soft_wrap=True)
        if not isinstance(error, StartFailed):
            return
        if lines := last_lines(error.log, SHOWN_LOG_LINES):
            self.console.print(f"The end of {error.log}:", soft_wrap=True)
            for line in lines:
                self.console.print(Text(f"  {line}", "dim"), soft_wrap=True)
        self.console.print("What is missing on this machine is shown by: codehub doctor")
        if error.child.external_setting:
            self.console.print(f"To use one that runs elsewhere, set {error.child.external_setting}.")

    def _print_line(self, status: ChildStatus) -> None:
        mark, style = LOOKS[status.state]
        now = datetime.now(UTC).astimezone()
        address = "" if status.state is ChildState.STOPPED else status.address
        words = [status.title, status.state, status.note or address]
        line = Text.assemble((f"{now:%H:%M:%S} ", "dim"), (mark, style), " ", "  ".join(filter(None, words)))
        self.console.print(line, soft_wrap=True)
        if status.state is ChildState.FAILING:
            self.console.print(f"  It keeps failing; look at its log: logs/{status.name}.log", soft_wrap=True)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        now = datetime.now(UTC)
        for part in self._parts.values():
            mark, style = LOOKS[part.state]
            duration = describe_duration(now - part.since) if part.state is ChildState.STARTING else ""
            table.add_row(
                Text(mark, style),
                part.title,
                Text(part.state, style),
                part.address,
                Text(part.note or duration, "dim"),
            )
        return table
