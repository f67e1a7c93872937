"""Print benchmark results as tables or as one JSON document."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

Cell = str | float | int
MILLISECONDS = 1000
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Section:
    """One table with its title, columns, rows and remarks."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    remarks: Sequence[str] = ()


@dataclass
class Report:
    """A report that shows each section as soon as it is added."""

    as_json: bool
    sections: list[Section] = field(default_factory=list)
    load_before: float = field(default_factory=lambda: os.getloadavg()[0])
    _console: Console = field(default_factory=lambda: Console(width=110))
    _progress: Console = field(default_factory=lambda: Console(stderr=True))

    def log(self, message: str) -> None:
        """Print progress to stderr."""
        self._progress.print(f"[dim]{message} (load {os.getloadavg()[0]:.1f})[/dim]")

    def add(self, section: Section) -> None:
        self.sections.append(section)
        if not self.as_json:
            self._show(section)

    def finish(self) -> None:
        if self.as_json:
            sections = [vars(each) for each in self.sections]
            self._console.print_json(json.dumps({"machine": self.machine(), "sections": sections}))
        else:
            self._console.print(self.machine())

    def machine(self) -> str:
        load = f"load {self.load_before:.1f} before, {os.getloadavg()[0]:.1f} after"
        return f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, {load}"

    def _show(self, section: Section) -> None:
        table = Table(title=section.title, title_justify="left")
        for number, column in enumerate(section.columns):
            table.add_column(column, justify="right" if number else "left")
        for row in section.rows:
            table.add_row(*(_text(cell) for cell in row))
        self._console.print(table)
        for remark in section.remarks:
            self._console.print(f"  {remark}")


def _text(cell: Cell) -> str:
    return f"{cell:,.2f}" if isinstance(cell, float) else str(cell)


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def milliseconds(seconds: float) -> float:
    return round(seconds * MILLISECONDS, 1)


def verdict(met: bool) -> str:
    return "met" if met else "NOT met"
