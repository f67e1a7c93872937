"""Show progress while a command waits: a bar on a terminal, a line per operation elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as ProgressBars
from rich.text import Text

from cli.formatting import format_size
from cli.terminal import print_note
from cli.words import operation_text
from cli.workspace.live_events import Progress, Snapshot, Update
from codehub.words import NOTABLE_STEPS, STEPS


class ProgressLines:
    """Prints each operation once when it begins."""

    def __init__(self) -> None:
        self._printed = ""

    def show(self, update: Update) -> None:
        text = _operation_text(update) or self._printed
        if text != self._printed:
            print_note(f"{text} ...")
        self._printed = text


class ProgressBar:
    """Shows one bar, which restarts with every step."""

    def __init__(self, bars: ProgressBars) -> None:
        self._bars = bars
        self._text = "Waiting"
        self._step = ""
        self._task = self._add_task()

    def show(self, update: Update) -> None:
        if isinstance(update, Snapshot):
            text = _operation_text(update) or self._text
            if text != self._text:
                self._text = text
                self._begin("")
        else:
            if update.step != self._step:
                self._begin(update.step)
            self._advance(update)

    def _begin(self, step: str) -> None:
        self._step = step
        # A task's total cannot be removed, so each step gets its own task.
        self._bars.remove_task(self._task)
        self._task = self._add_task()

    def _add_task(self) -> TaskID:
        return self._bars.add_task(self._text, total=None, unit="")

    def _advance(self, progress: Progress) -> None:
        # The total of seconds is a deadline, which the step normally does not reach.
        total = None if progress.unit == "seconds" else progress.total
        step = f": {STEPS[progress.step]}" if progress.step in NOTABLE_STEPS else ""
        self._bars.update(
            self._task,
            description=f"{self._text}{step}",
            completed=progress.done,
            total=total,
            unit=progress.unit,
        )


@contextmanager
def show_progress() -> Iterator[ProgressBar | ProgressLines]:
    # Use standard error, because the result may be JSON on standard output.
    screen = Console(stderr=True, highlight=False)
    if not screen.is_terminal:
        yield ProgressLines()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), Amounts(), TimeElapsedColumn())
    with ProgressBars(*columns, console=screen, transient=True) as bars:
        yield ProgressBar(bars)


def _operation_text(update: Update) -> str:
    """Return the current operation, or nothing between two operations."""
    return operation_text(update.workspace) if isinstance(update, Snapshot) and update.workspace else ""


class Amounts(ProgressColumn):
    """Shows bytes with their rate, or the number of other units."""

    def render(self, task: Task) -> Text:
        unit = task.fields.get("unit")
        if not unit or unit == "seconds" or not (task.completed or task.total):
            return Text("")
        if unit != "bytes":
            return Text(f"{task.completed:.0f} of {task.total:.0f} {unit}" if task.total else "")
        total = f" of {format_size(task.total)}" if task.total else ""
        rate = f", {format_size(task.speed)}/s" if task.speed else ""
        return Text(f"{format_size(task.completed)}{total}{rate}")
