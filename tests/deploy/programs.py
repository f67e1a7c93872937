"""Run the programs that check the deployment."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment)
