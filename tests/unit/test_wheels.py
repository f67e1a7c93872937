"""The wheels: a production install has no tests, benchmarks or game day; the game day is an extra."""

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = {"codehub": ROOT, "codehub-gameday": ROOT / "gameday"}
TOOLS = ("gameday", "testkit", "testkit.crash_points", "tests", "benchmarks", "worker.crash_points")
FIND_TOOLS = f"""
from importlib.util import find_spec
for name in {TOOLS}:
    try:
        found = find_spec(name)
    except ModuleNotFoundError:
        continue
    if found:
        print(name)
"""


def install(project: Path, directory: Path) -> None:
    """Build the wheel as pip would, without isolation and network, and install only that wheel."""
    wheels = directory.with_name(f"{directory.name}-wheels-{project.name}")
    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(wheels),
        cwd=project,
    )
    [wheel] = wheels.iterdir()
    uv = Path(sys.executable).with_name("uv")
    run(str(uv), "pip", "install", "--offline", "--no-deps", "--target", str(directory), str(wheel))


def run(*command: str, cwd: Path = ROOT) -> str:
    result = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def python(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with an installation, but without `site`, which would add the editable repository."""
    path = os.pathsep.join([str(directory), sysconfig.get_path("purelib")])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "COLUMNS": "120"}
    return subprocess.run(
        (sys.executable, "-S", "-P", *arguments),
        cwd=directory,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def codehub(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return python(directory, str(directory / "bin" / "codehub"), *arguments)


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("production") / "site"
    install(PROJECTS["codehub"], directory)
    return directory


@pytest.fixture(scope="module")
def with_gameday(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("gameday") / "site"
    for project in PROJECTS.values():
        install(project, directory)
    return directory


def test_a_production_install_runs_the_command_line(production: Path) -> None:
    result = codehub(production, "--help")
    assert result.returncode == 0, result.stderr
    assert "migrate" in result.stdout


def test_a_production_install_has_no_tools(production: Path) -> None:
    result = python(production, "-c", FIND_TOOLS)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_without_the_game_day_its_command_says_how_to_install_it(production: Path) -> None:
    result = codehub(production, "gameday", "--minutes", "1")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "The game day is not installed. Install it with: pip install 'codehub[gameday]'\n"


def test_the_game_day_is_a_second_wheel(with_gameday: Path) -> None:
    assert codehub(with_gameday, "gameday", "--help").returncode == 0
    result = python(with_gameday, "-c", "import gameday.run, gameday.report.text, gameday.report.writer")
    assert result.returncode == 0, result.stderr
    found = python(with_gameday, "-c", FIND_TOOLS).stdout.split()
    assert found == ["gameday"]


def test_the_game_day_needs_its_own_version_of_codehub() -> None:
    main, gameday = (
        tomllib.loads((project / "pyproject.toml").read_text())["project"] for project in PROJECTS.values()
    )
    assert gameday["version"] == main["version"]
    assert gameday["dependencies"] == [f"codehub[embedded]=={main['version']}"]
    assert main["optional-dependencies"]["gameday"] == [gameday["name"]]
