"""A running `codehub up`, and other commands beside it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner, Result

from cli.main import app

CODEHUB = Path(sys.executable).with_name("codehub")
# The slowest server to start; nobody talks to this one.
S3_ELSEWHERE = {
    "CODEHUB_S3_ENDPOINT_URL": "http://s3.example",
    "CODEHUB_S3_ACCESS_KEY": "key",
    "CODEHUB_S3_SECRET_KEY": "secret",
}


class Up:
    """A running `codehub up`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []

    def read_until(self, pattern: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if re.search(pattern, line):
                return line
        raise AssertionError("it ended instead:\n" + "\n".join(self.said))


def settings_for_up(data_dir: Path, **settings: str) -> dict[str, str]:
    """The environment of the test run without its own settings, and with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CODEHUB_")}
    return {**kept, **S3_ELSEWHERE, "CODEHUB_DATA_DIR": str(data_dir), "COLUMNS": "120", **settings}


@contextmanager
def up(variables: dict[str, str], *arguments: str) -> Iterator[Up]:
    with subprocess.Popen(
        (CODEHUB, "up", *arguments),
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield Up(process)
        finally:
            process.kill()


def codehub(variables: dict[str, str], *arguments: str) -> Result:
    """A command that is quickly done, in this process."""
    return CliRunner().invoke(app, arguments, env=variables)
