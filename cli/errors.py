"""What a person is told when a command cannot do what was asked: what, why, and what to do next."""

from collections.abc import Sequence

import typer

from cli.exit_codes import ExitCode


class Failed(Exception):
    """The end of a command: a sentence, more lines about it, and the next step."""

    def __init__(
        self, message: str, next_step: str = "", *, code: ExitCode = ExitCode.FAILED, more: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.code = code
        self.more = tuple(more)

    def tell(self) -> None:
        lines = (self.message, *(f"  {line}" for line in self.more), self.next_step)
        for line in filter(None, lines):
            typer.echo(printable(line), err=True)


def printable(text: str) -> str:
    """Without what would move the cursor of a terminal: some texts were written by programs."""
    return "".join(character if character.isprintable() or character in "\n\t" else "�" for character in text)
