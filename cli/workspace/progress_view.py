"""How far a workspace is, while one waits: a bar on a terminal, a line for each step anywhere else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

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
from rich.progress import Progress as Bars
from rich.text import Text

from cli.formatting import size
from cli.terminal import say
from cli.words import doing
from cli.workspace.live_events import Progress, Seen, Update
from codehub.words import NOTABLE_STEPS, STEPS


class View(Protocol):
    """Is told everything that happens."""

    def show(self, update: Update) -> None: ...


@contextmanager
def showing() -> Iterator[View]:
    # On the other output: the answer may be a document.
    screen = Console(stderr=True, highlight=False)
    if not screen.is_terminal:
        yield Lines()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), Figures(), TimeElapsedColumn())
    with Bars(*columns, console=screen, transient=True) as bars:
        yield Bar(bars)


class Lines:
    """Says once what begins."""

    def __init__(self) -> None:
        self._said = ""

    def show(self, update: Update) -> None:
        words = _words(update) or self._said
        if words != self._said:
            say(f"{words} ...")
        self._said = words


class Bar:
    """One bar for the step under way; it begins anew with each."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._words = "Asking"
        self._step = ""
        self._task = self._add_task()

    def show(self, update: Update) -> None:
        if isinstance(update, Seen):
            words = _words(update) or self._words
            if words != self._words:
                self._words = words
                self._begin("")
        else:
            if update.step != self._step:
                self._begin(update.step)
            self._advance(update)

    def _begin(self, step: str) -> None:
        self._step = step
        # A total cannot be taken back from a task, so each step has its own.
        self._bars.remove_task(self._task)
        self._task = self._add_task()

    def _add_task(self) -> TaskID:
        return self._bars.add_task(self._words, total=None, unit="")

    def _advance(self, progress: Progress) -> None:
        # Seconds are counted up to a deadline, which nobody waits for to be reached.
        total = None if progress.unit == "seconds" else progress.total
        named = f"{self._words}: {STEPS[progress.step]}" if progress.step in NOTABLE_STEPS else self._words
        self._bars.update(
            self._task, description=named, completed=progress.done, total=total, unit=progress.unit
        )


def _words(update: Update) -> str:
    """Nothing between two operations: the next one follows at once."""
    return doing(update.workspace) if isinstance(update, Seen) and update.workspace else ""


class Figures(ProgressColumn):
    """Bytes and how fast they move; other units in words."""

    def render(self, task: Task) -> Text:
        unit = task.fields.get("unit")
        if not unit or unit == "seconds" or not (task.completed or task.total):
            return Text("")
        if unit != "bytes":
            return Text(f"{task.completed:.0f} of {task.total:.0f} {unit}" if task.total else "")
        of = f" of {size(task.total)}" if task.total else ""
        rate = f", {size(task.speed)}/s" if task.speed else ""
        return Text(f"{size(task.completed)}{of}{rate}")
