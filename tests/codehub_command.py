"""Run `codehub up` and other commands of the command line."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner, Result

from cli.main import app

CODEHUB = Path(sys.executable).with_name("codehub")
COMMAND_SECONDS = 300
# S3 is the slowest server to start, and these tests do not use it.
S3_ELSEWHERE = {
    "CODEHUB_S3_ENDPOINT_URL": "http://s3.example",
    "CODEHUB_S3_ACCESS_KEY": "key",
    "CODEHUB_S3_SECRET_KEY": "secret",
}


@dataclass(frozen=True)
class CommandRun:
    """The exit code of a command and its output, errors last."""

    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


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
        raise AssertionError("codehub up ended:\n" + "\n".join(self.said))


def settings_for_up(data_dir: Path, **settings: str) -> dict[str, str]:
    """Return the environment of the test run with these settings instead of its own."""
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
    """Run a short command in this process."""
    return CliRunner().invoke(app, arguments, env=variables)


async def run_codehub(variables: Mapping[str, str], *arguments: str) -> CommandRun:
    """Run a command to its end in a process of its own."""
    process = await asyncio.to_thread(
        subprocess.run,
        [str(CODEHUB), *arguments],
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
    )
    return CommandRun(process.returncode, process.stdout, process.stderr)
