"""Programs of others that the deployment is checked with."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]


def need_program(name: str, package: str) -> str:
    """Its path; skip where it is missing, and where CI runs, fail."""
    found = shutil.which(name)
    if found is None:
        give_up(f"there is no {name}; on Debian: apt-get install {package}")
    return found


def give_up(problem: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)


def run(*command: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment)
