"""From a terminal in a local workspace nothing of others can be reached; without its sandbox, all can."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.needs import need_bubblewrap, need_root
from testkit.ordinary_user import UID, as_ordinary_user
from tests.integration.sandbox_attempts import ATTEMPTS
from tests.integration.terminal import attempt_everything

REPOSITORY = Path(__file__).parents[2]
# The machine itself keeps these from ordinary users.
ONLY_ROOT = {
    "read the system's password hashes",
    "send raw packets",
    "make and use a device node",
    "mount a file system",
    "change the system's programs",
    "change kernel settings",
    "load programs into the kernel",
    "measure all processes of the machine",
    "type into a terminal",
}


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory with a path that is short enough for the sockets in it, and that other users can enter."""
    path = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(autouse=True)
def _needs() -> None:
    need_bubblewrap()
    need_root()


def attempt_as_ordinary_user(directory: Path, mode: str) -> set[str]:
    os.chown(directory, UID, UID)
    command = as_ordinary_user((sys.executable, "-m", "tests.integration.terminal", str(directory), mode))
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        command, cwd=REPOSITORY, env=environment, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


async def test_started_by_root_no_attempt_succeeds(directory: Path) -> None:
    assert await attempt_everything(directory, sandboxed=True) == []


async def test_started_by_root_without_a_sandbox_all_of_them_do(directory: Path) -> None:
    assert set(await attempt_everything(directory, sandboxed=False)) == ATTEMPTS.keys()


def test_started_by_an_ordinary_user_no_attempt_succeeds(directory: Path) -> None:
    assert attempt_as_ordinary_user(directory, "sandboxed") == set()


def test_started_by_an_ordinary_user_without_a_sandbox_most_of_them_do(directory: Path) -> None:
    assert attempt_as_ordinary_user(directory, "plain") == ATTEMPTS.keys() - ONLY_ROOT


def test_the_documentation_lists_every_attempt() -> None:
    document = (REPOSITORY / "docs" / "security.md").read_text()
    rows = {f"| {name} | no | no | {'no' if name in ONLY_ROOT else 'yes'} |" for name in ATTEMPTS}
    assert rows <= set(document.splitlines())
