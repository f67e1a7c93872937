"""The files for the browser: generated modules are current, lines are short, the packages are locked."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from api.dashboard.generate import FILES

ROOT = Path(__file__).parents[2]
LONGEST_LINE = 110
SOURCES = sorted(
    file
    for directory in ("api/dashboard", "proxy/pages/templates", "tests/dashboard")
    for file in (ROOT / directory).rglob("*")
    if file.suffix in {".js", ".mjs", ".ts", ".css", ".html"}
)


@pytest.mark.parametrize(("file", "render"), FILES.items(), ids=lambda each: getattr(each, "name", ""))
def test_a_generated_module_is_current(file: Path, render: Callable[[], str]) -> None:
    assert file.read_text("utf-8") == render(), "run `make docs`"


def test_lines_are_short() -> None:
    assert len(SOURCES) > 60
    long = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []


def test_every_npm_package_is_locked_and_has_its_reason() -> None:
    manifest = json.loads((ROOT / "package.json").read_text())
    wanted = {**manifest["devDependencies"], **manifest["optionalDependencies"]}
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    page = (ROOT / "docs/dependencies.md").read_text()
    _, _, scripts = page.partition("## Scripts for the browser\n")
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert sorted(re.findall(r"^\| `npm:(\S+)` \| \S", scripts, re.MULTILINE)) == sorted(wanted)
    unlocked = [name for name, package in packages.items() if name and "integrity" not in package]
    assert unlocked == []
    assert not [name for name, package in packages.items() if "resolved" in package]
