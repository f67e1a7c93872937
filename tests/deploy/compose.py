"""Read docker-compose.yml as Docker Compose does."""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml  # type: ignore[import-untyped]

from testkit.needs import need_program
from tests.deploy.programs import ROOT, run

FILE = ROOT / "docker-compose.yml"
SECRETS = (
    "POSTGRES_PASSWORD",
    "TEMPORAL_POSTGRES_PASSWORD",
    "REDIS_PASSWORD",
    "S3_ACCESS_KEY",
    "S3_SECRET_KEY",
    "CODEHUB_EGRESS_KEY",
    "GRAFANA_PASSWORD",
)
OURS = ("migrate", "directories", "import-homes", "api", "proxy", "egress", "worker-1", "worker-2")
ONE_SHOTS = ("migrate", "directories", "import-homes", "temporal-schema", "temporal-namespace")

Service = Mapping[str, Any]


def written() -> dict[str, Any]:
    """Return the file before variables are filled in."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


@functools.cache
def services() -> Mapping[str, Service]:
    """Return every service as it runs after `make env`."""
    answer = config(generated_env())
    assert answer.returncode == 0, answer.stderr
    found: Mapping[str, Service] = yaml.safe_load(answer.stdout)["services"]
    return found


def generated_env() -> str:
    """Return what `make env` writes."""
    with TemporaryDirectory(prefix="codehub-env-") as directory:
        target = Path(directory) / "env"
        assert run(sys.executable, "deploy/make_env.py", str(target)).returncode == 0
        return target.read_text()


def config(environment_file: str) -> "subprocess.CompletedProcess[str]":
    """Run `docker compose config` with only these variables."""
    with TemporaryDirectory(prefix="codehub-env-") as directory:
        file = Path(directory) / "env"
        file.write_text(environment_file)
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        command = (*_compose(), "--env-file", str(file), "--profile", "import-homes", "config")
        return run(*command, environment=environment)


@functools.cache
def _compose() -> tuple[str, ...]:
    """Return the command of the Compose plugin, or of the older program."""
    if shutil.which("docker") and run("docker", "compose", "version").returncode == 0:
        return ("docker", "compose")
    return (need_program("docker-compose"),)


def environment_of(service: Service) -> dict[str, str]:
    """Return the environment of a service; Compose prints a list or a mapping."""
    given = service.get("environment") or {}
    pairs = given.items() if isinstance(given, dict) else (each.split("=", 1) for each in given)
    return {name: "" if value is None else str(value) for name, value in pairs}


def sources_of(service: Service) -> dict[str, str]:
    """Return the mounted sources by target."""
    mounts = [_mount(each) for each in service.get("volumes") or ()]
    return {target: source for source, target in mounts}


def _mount(given: str | Mapping[str, str]) -> tuple[str, str]:
    if isinstance(given, str):
        source, target = given.split(":")[:2]
        return source, target
    return given["source"], given["target"]


def variables_of(text: str) -> set[str]:
    """Return the names of the variables that Compose fills in."""
    return set(re.findall(r"(?<!\$)\$\{(\w+)", text))
