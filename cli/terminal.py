"""Where answers go: tables and sentences for people, documents for scripts."""

import json
import os
import sys
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from cli.errors import ExitCode, Failed, printable

# Nobody wraps a line that goes into a file or another program.
WIDE = 500


def is_interactive() -> bool:
    """Whether a person reads the output: then commands wait and show how far it is."""
    return sys.stdout.isatty()


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_terminal(question: str, instead: str) -> None:
    """A question that nobody can answer is a wrong usage."""
    if not can_ask():
        raise Failed(f"There is no terminal to ask {question}.", instead, code=ExitCode.USAGE)


def console() -> Console:
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=WIDE if wide else None)


def say(text: str) -> None:
    """A remark that is no part of the answer."""
    typer.echo(printable(text), err=True)


def print_json(document: Any) -> None:  # noqa: ANN401
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def answer(document: Any, sentence: str, *, as_json: bool) -> None:  # noqa: ANN401
    if as_json:
        print_json(document)
    else:
        typer.echo(printable(sentence))


def print_json_line(document: Any) -> None:  # noqa: ANN401
    """One of many, as it comes."""
    typer.echo(json.dumps(document, ensure_ascii=False))


def table(*columns: str) -> Table:
    return Table(*columns, box=box.SIMPLE_HEAD, show_edge=False)
