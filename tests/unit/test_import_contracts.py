"""The architecture's rules can fail: deliberate violations, made in a copy, are found and named."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PACKAGES = (
    "codehub",
    "activities",
    "workflows",
    "api",
    "proxy",
    "worker",
    "storage_job",
    "gameday",
    "cli",
    "migrations",
)

ONE_WAY = "Imports point one way"
NO_WORKFLOWS = "The API and the proxy know no workflows or activities"
TRANSPORT = "The proxy's transport moves bytes and knows nothing of people and workspaces"
ADAPTERS = "Adapters do not import each other"
SETTINGS = "Only entry points and wiring read settings"
JOB_STANDS_ALONE = "The storage job stands alone"
JOB_IS_RUN = "Nobody imports the storage job: it is run, not called"
PURE = "The domain is pure: it imports only these modules of the standard library"


class Violation(NamedTuple):
    """A line that must not be there, and the contract that says so."""

    contract: str
    file: str
    line: str


VIOLATIONS = (
    Violation(PURE, "codehub/domain/planner.py", "import sqlalchemy"),
    Violation(PURE, "codehub/domain/planner.py", "import os"),
    Violation(PURE, "codehub/domain/planner.py", "from codehub.db import models"),
    Violation(ONE_WAY, "codehub/domain/planner.py", "import codehub.db"),
    Violation(ONE_WAY, "codehub/db/session.py", "import codehub.services"),
    Violation(ONE_WAY, "codehub/services/__init__.py", "import activities"),
    Violation(ONE_WAY, "workflows/__init__.py", "import worker"),
    Violation(ONE_WAY, "gameday/__init__.py", "import cli"),
    Violation(NO_WORKFLOWS, "api/__init__.py", "import workflows"),
    Violation(NO_WORKFLOWS, "proxy/__init__.py", "import activities"),
    Violation(TRANSPORT, "proxy/transport/server.py", "import codehub.services.identity"),
    Violation(ADAPTERS, "codehub/adapters/violation_one.py", "import codehub.adapters.violation_two"),
    Violation(SETTINGS, "codehub/services/__init__.py", "from codehub.settings import load_settings"),
    Violation(SETTINGS, "activities/__init__.py", "import codehub.settings"),
    Violation(JOB_STANDS_ALONE, "storage_job/__main__.py", "import codehub.domain"),
    Violation(JOB_IS_RUN, "activities/__init__.py", "import storage_job"),
)

IMPURE = {
    "from datetime import datetime\n\nNOW = datetime.now()\n": "datetime.datetime.now",
    "import datetime\n\nTODAY = datetime.date.today()\n": "datetime.date.today",
    "import time\n": "time",
    "import uuid\n": "uuid",
    "from random import random\n": "random",
    "import os\n": "os",
    "from pathlib import Path\n": "pathlib",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of everything that the contracts are about."""
    copy = tmp_path_factory.mktemp("project")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for adapter in ("violation_one", "violation_two"):
        (copy / "codehub" / "adapters" / f"{adapter}.py").touch()
    return copy


def test_the_code_as_it_is_keeps_every_contract(project: Path) -> None:
    result = lint_imports(project)
    assert result.returncode == 0, result.stdout
    assert [name for name in contract_names() if f"{name} KEPT" not in result.stdout] == []


@pytest.mark.parametrize("violation", VIOLATIONS, ids=[f"{each.file}: {each.line}" for each in VIOLATIONS])
def test_a_violation_breaks_its_contract(project: Path, violation: Violation) -> None:
    with appended(project / violation.file, violation.line):
        result = lint_imports(project)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{violation.contract} BROKEN" in result.stdout


def test_every_contract_has_been_broken_once() -> None:
    assert {violation.contract for violation in VIOLATIONS} == contract_names()


def test_every_package_that_ships_is_under_contract() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(configuration["tool"]["importlinter"]["root_packages"]) == set(PACKAGES)
    assert set(configuration["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == set(PACKAGES)


@pytest.mark.parametrize(("source", "banned"), IMPURE.items(), ids=IMPURE.values())
def test_the_domain_has_no_clock_ids_chance_or_environment(source: str, banned: str) -> None:
    assert f"TID251 `{banned}` is banned" in ruff(source, "codehub/domain/x.py")


def test_outside_of_the_domain_these_are_allowed() -> None:
    assert [ruff(source, "codehub/services/x.py") for source in IMPURE] == [""] * len(IMPURE)


def contract_names() -> set[str]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {contract["name"] for contract in configuration["tool"]["importlinter"]["contracts"]}


@contextmanager
def appended(file: Path, line: str) -> Iterator[None]:
    before = file.read_text()
    file.write_text(f"{before}\n{line}\n")
    try:
        yield
    finally:
        file.write_text(before)


def lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    # Before the editable installation, or it would look at the packages here instead of the copy.
    environment = {**os.environ, "PYTHONPATH": str(project), "COLUMNS": "200"}
    return subprocess.run(
        [BIN / "lint-imports", "--no-cache", "--no-logo"],
        cwd=project,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def ruff(source: str, filename: str) -> str:
    """What is banned in a file of this name, as ruff says it."""
    options = ["--select", "TID251", "--output-format", "concise", "--quiet", "--no-cache"]
    command = [str(BIN / "ruff"), "check", *options, "--stdin-filename", filename, "-"]
    result = subprocess.run(command, cwd=ROOT, input=source, check=False, capture_output=True, text=True)
    assert result.stderr == ""
    return result.stdout
