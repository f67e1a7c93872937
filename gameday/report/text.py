"""The report for a terminal."""

from collections import Counter

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gameday.report.result import Story

# The whole history is in the page; here is what led to it.
SHOWN_LINES = 40


def print_report(story: Story, console: Console) -> None:
    console.print()
    style = "bold green" if story.held else "bold red"
    console.print(Text.assemble((story.verdict, style), f" through {len(story.faults)} faults."))
    options = story.options
    console.print(
        f"{story.began:%Y-%m-%d %H:%M} UTC, seed {options.seed}, backend {options.backend}, "
        f"{options.minutes:g} minutes of faults, {story.seconds:.0f} s in all."
    )
    for remark in story.remarks:
        console.print(Text(remark, "dim"))
    console.print(_invariants(story))
    console.print(_faults(story))
    console.print(_recoveries(story))
    console.print(_people(story))
    _print_violations(story, console)
    console.print(Text.assemble("To play it again: ", (options.command, "bold")), soft_wrap=True)


def _invariants(story: Story) -> Table:
    broken = Counter(violation.invariant for violation in story.violations)
    table = _table("invariant", "checks", "violations")
    for invariant, checks in story.checked.items():
        count = broken[invariant]
        found = Text(str(count), "bold red" if count else "green") if checks else Text("not tested", "yellow")
        table.add_row(invariant.value, f"{checks:,}", found)
    return table


def _faults(story: Story) -> Table:
    table = _table("fault", "times")
    for kind, count in story.count_faults():
        table.add_row(kind, str(count))
    return table


def _recoveries(story: Story) -> Table:
    table = _table("part that was away", "times", "p50 s", "max s")
    for name, span in story.spans().items():
        table.add_row(name, str(span.count), f"{span.median:.1f}", f"{span.longest:.1f}")
    return table


def _people(story: Story) -> Table:
    table = _table("what people did", "times")
    for words, count in story.tally.items():
        table.add_row(words, f"{count:,}")
    return table


def _print_violations(story: Story, console: Console) -> None:
    for violation in story.violations:
        whose = f" Workspace {violation.workspace_id}:" if violation.workspace_id else ""
        console.print(Text(f"{violation.invariant.value}: violated at {violation.at:.1f} s.", "bold red"))
        console.print(Text(f"{whose} {violation.words}".strip()), soft_wrap=True)
    for workspace_id, lines in story.histories.items():
        console.print(Text(f"The history of {workspace_id} (the end of it):", "bold"))
        for line in lines[-SHOWN_LINES:]:
            console.print(Text(f"  {line}", "dim"), soft_wrap=True)


def _table(first: str, *numbers: str) -> Table:
    table = Table(first, box=box.SIMPLE_HEAD, show_edge=False)
    for each in numbers:
        table.add_column(each, justify="right")
    return table
