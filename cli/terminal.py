"""Terminal output and prompts: tables and sentences for people, JSON for scripts."""

import json
import os
import sys
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from cli.control_characters import printable, printable_json
from cli.errors import CommandError, ExitCode

# Do not wrap lines that go into a file or another program.
WIDE = 500


def is_interactive() -> bool:
    """Return whether a person reads the output; then commands wait and show progress."""
    return sys.stdout.isatty()


def can_prompt() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_terminal(purpose: str, alternative: str) -> None:
    """Raise a usage error if there is no terminal to ask on."""
    if not can_prompt():
        raise CommandError(f"There is no terminal to ask for {purpose}.", alternative, code=ExitCode.USAGE)


def read_first_line() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def console() -> Console:
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=WIDE if wide else None)


def print_note(text: str) -> None:
    """Print a note that is not part of the result to standard error."""
    typer.echo(printable(text), err=True)


def print_json(document: Any) -> None:  # noqa: ANN401
    typer.echo(printable_json(json.dumps(document, indent=2, ensure_ascii=False)))


def print_json_line(document: Any) -> None:  # noqa: ANN401
    typer.echo(printable_json(json.dumps(document, ensure_ascii=False)))


def print_result(document: Any, sentence: str, *, as_json: bool) -> None:  # noqa: ANN401
    if as_json:
        print_json(document)
    else:
        typer.echo(printable(sentence))


def new_table(*columns: str) -> Table:
    return Table(*columns, box=box.SIMPLE_HEAD, show_edge=False)
