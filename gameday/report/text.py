"""The report on a terminal."""

from collections import Counter

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gameday.report.result import GameResult

# The HTML page has the complete history.
SHOWN_LINES = 40


def print_report(result: GameResult, console: Console) -> None:
    console.print()
    style = "bold green" if result.held else "bold red"
    console.print(Text.assemble((result.verdict, style), f" during {len(result.faults)} faults."))
    options = result.options
    console.print(
        f"{result.began:%Y-%m-%d %H:%M} UTC, seed {options.seed}, backend {options.backend}, "
        f"{options.minutes:g} minutes of faults, {result.seconds:.0f} s in total."
    )
    for remark in result.remarks:
        console.print(Text(remark, "dim"))
    console.print(_invariants(result))
    console.print(_faults(result))
    console.print(_recoveries(result))
    console.print(_people(result))
    _print_violations(result, console)
    console.print(Text.assemble("To play this game again: ", (options.command, "bold")), soft_wrap=True)


def _invariants(result: GameResult) -> Table:
    broken = Counter(violation.invariant for violation in result.violations)
    table = _table("invariant", "checks", "violations")
    for invariant, checks in result.checked.items():
        count = broken[invariant]
        found = Text(str(count), "bold red" if count else "green") if checks else Text("not tested", "yellow")
        table.add_row(invariant.value, f"{checks:,}", found)
    return table


def _faults(result: GameResult) -> Table:
    table = _table("fault", "times")
    for kind, count in result.count_faults():
        table.add_row(kind, str(count))
    return table


def _recoveries(result: GameResult) -> Table:
    table = _table("unavailable part", "outages", "p50 s", "max s")
    for name, stats in result.recovery_stats().items():
        table.add_row(name, str(stats.count), f"{stats.median:.1f}", f"{stats.longest:.1f}")
    return table


def _people(result: GameResult) -> Table:
    table = _table("what people did", "times")
    for words, count in result.tally.items():
        table.add_row(words, f"{count:,}")
    return table


def _print_violations(result: GameResult, console: Console) -> None:
    for violation in result.violations:
        owner = f"Workspace {violation.workspace_id}: " if violation.workspace_id else ""
        console.print(Text(f"{violation.invariant.value}: violated at {violation.at:.1f} s.", "bold red"))
        console.print(Text(f"{owner}{violation.words}"), soft_wrap=True)
    for workspace_id, lines in result.histories.items():
        console.print(Text(f"The end of the history of {workspace_id}:", "bold"))
        for line in lines[-SHOWN_LINES:]:
            console.print(Text(f"  {line}", "dim"), soft_wrap=True)


def _table(first: str, *numbers: str) -> Table:
    table = Table(first, box=box.SIMPLE_HEAD, show_edge=False)
    for each in numbers:
        table.add_column(each, justify="right")
    return table
