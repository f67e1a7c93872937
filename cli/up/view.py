"""The output of `codehub up`: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.control_characters import printable
from cli.formatting import format_duration, now
from cli.up.status import STATE_MARKS
from codehub.embedded.child_process import ChildState, ChildStatus, StartFailed, last_lines
from codehub.embedded.data_dir import DataDir

SHOWN_LOG_LINES = 15
# The states that plain output shows.
PRINTED_STATES = {
    ChildState.RUNNING,
    ChildState.RESTARTING,
    ChildState.FAILING,
    ChildState.STOPPED,
    ChildState.EXTERNAL,
}


class View:
    """Prints what `codehub up` does."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self._parts: dict[str, ChildStatus] = {}
        self._live = False
        self._started = monotonic()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Show the live table during the block."""
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
        if not self._live and changed and status.state in PRINTED_STATES:
            self._print_line(status)

    def print(self, text: str) -> None:
        # Without markup, because output of programs may contain brackets; without wrapping, for logs.
        self.console.print(Text(text), soft_wrap=True)

    def show_password(self, password: str) -> None:
        self.console.print("The first account (shown only once):")
        self.console.print(Text.assemble("  user      ", ("admin", "bold")))
        self.console.print(Text.assemble("  password  ", (password, "bold")))

    def ready(self, urls: Mapping[str, str], data: DataDir, warning: str | None = None) -> None:
        self.console.print(
            Text.assemble(("CodeHub is ready", "bold green"), f" after {monotonic() - self._started:.1f} s.")
        )
        for name, url in urls.items():
            self.console.print(f"  {name}: {url}")
        self.console.print(f"  Data and logs: {data.root}", soft_wrap=True)
        if warning:
            self.console.print(Text(f"  {warning}", "bold yellow"), soft_wrap=True)
        self.console.print("Press Ctrl-C to stop it, or run: codehub down")

    def explain(self, error: Exception) -> None:
        """Print the error; for a child that did not start also the end of its log and what to do."""
        self.console.print(Text(printable(str(error)), "bold red"), soft_wrap=True)
        if not isinstance(error, StartFailed):
            return
        if lines := last_lines(error.log, SHOWN_LOG_LINES):
            self.console.print(f"The end of {error.log}:", soft_wrap=True)
            for line in lines:
                self.console.print(Text(printable(f"  {line}"), "dim"), soft_wrap=True)
        self.console.print("Check this machine with: codehub doctor")
        if error.child.external_setting:
            self.console.print(f"To use an existing server instead, set {error.child.external_setting}.")

    def _print_line(self, status: ChildStatus) -> None:
        mark, style = STATE_MARKS[status.state]
        time = now().astimezone()
        address = "" if status.state is ChildState.STOPPED else status.address
        fields = [status.title, status.state, status.note or address]
        line = Text.assemble(
            (f"{time:%H:%M:%S} ", "dim"), (mark, style), " ", "  ".join(filter(None, fields))
        )
        self.console.print(line, soft_wrap=True)
        if status.state is ChildState.FAILING:
            self.console.print(f"  It keeps failing. See its log: logs/{status.name}.log", soft_wrap=True)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        for part in self._parts.values():
            mark, style = STATE_MARKS[part.state]
            duration = format_duration(now() - part.since) if part.state is ChildState.STARTING else ""
            table.add_row(
                Text(mark, style),
                part.title,
                Text(part.state, style),
                part.address,
                Text(part.note or duration, "dim"),
            )
        return table
