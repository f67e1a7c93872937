"""The commands `up`, `status` and `down` as a person uses them, on real servers."""

import json
import re
import signal
from pathlib import Path

import psutil
import pytest
from argon2 import PasswordHasher

from codehub.db.session import connect
from codehub.embedded.data_dir import DataDir
from codehub.embedded.servers.registry import environment, load_config
from codehub.settings import load_settings
from testkit.processes import process_tree, wait_until_ended
from tests.codehub_command import codehub, settings_for_up, up

SERVERS_ONLY = "--servers-only"


@pytest.fixture
def settings_of_test(tmp_path: Path) -> dict[str, str]:
    return settings_for_up(tmp_path / "data", CODEHUB_WORKSPACES_INSTANCE_BACKEND="local")


async def test_up_status_and_down(settings_of_test: dict[str, str]) -> None:
    with up(settings_of_test, SERVERS_ONLY) as first:
        password = first.read_until("password").split()[-1]
        first.read_until("CodeHub is ready")
        assert any("S3  external  s3.example" in line for line in first.said)
        family = process_tree(first.process.pid)

        status = json.loads(codehub(settings_of_test, "status", "--json").stdout)
        assert status["running"]
        assert status["pid"] == first.process.pid
        assert status["urls"] == {}
        # The servers alone run no workspaces.
        assert status["instance_backend"] is None
        states = {part["name"]: part["state"] for part in status["parts"]}
        assert states == {"postgres": "running", "redis": "running", "s3": "external", "temporal": "running"}

        with up(settings_of_test, SERVERS_ONLY) as second:
            second.read_until(f"already runs on {settings_of_test['CODEHUB_DATA_DIR']}")
            assert second.process.wait() == 1

        redis = next(part["pid"] for part in status["parts"] if part["name"] == "redis")
        psutil.Process(redis).kill()
        assert "it was ended by SIGKILL; next start in 0.25 s" in first.read_until("Redis  restarting")
        first.read_until("Redis  running")

        assert await stored_hash_matches(settings_of_test, password)
        assert password not in everything_below(Path(settings_of_test["CODEHUB_DATA_DIR"]) / "logs")

        # A crash of the supervisor itself ends everything.
        family += process_tree(first.process.pid)
        first.process.send_signal(signal.SIGKILL)
        assert wait_until_ended(family) == []
        first.process.wait()

    stopped = codehub(settings_of_test, "status")
    assert (stopped.exit_code, "is not running" in stopped.stdout) == (3, True)

    with up(settings_of_test, SERVERS_ONLY) as again:
        again.read_until("CodeHub is ready")
        # The account already exists, so no password is shown.
        assert not [line for line in again.said if "password" in line or "Database schema" in line]
        assert await stored_hash_matches(settings_of_test, password)
        table = codehub(settings_of_test, "status")
        assert table.exit_code == 0
        assert re.search(r"PostgreSQL +running +\d+ +127\.0\.0\.1:\d+ +[\d.]+ s", table.stdout)
        family = process_tree(again.process.pid)
        down = codehub(settings_of_test, "down")
        assert (down.exit_code, down.stdout.splitlines()[-1][:7]) == (0, "Stopped")
        assert again.process.wait() == 0
    assert wait_until_ended(family) == []
    assert codehub(settings_of_test, "down").stdout.startswith("CodeHub is not running on")


def test_a_failed_start_shows_the_log_and_what_to_do(settings_of_test: dict[str, str]) -> None:
    redis = Path(settings_of_test["CODEHUB_DATA_DIR"]) / "redis"
    (redis / "appendonly.aof").mkdir(parents=True)
    with up(settings_of_test, SERVERS_ONLY) as failing:
        failing.read_until("Redis did not start: it ended with exit code 1")
        failing.read_until("The end of .*redis.log")
        failing.read_until("Can't open the append-only file")
        failing.read_until("codehub doctor")
        failing.read_until("CODEHUB_REDIS_URL")
        assert failing.process.wait() == 1


def test_ctrl_c_during_the_start_stops_everything(settings_of_test: dict[str, str]) -> None:
    with up(settings_of_test, SERVERS_ONLY) as starting:
        starting.read_until("running")
        family = process_tree(starting.process.pid)
        starting.process.send_signal(signal.SIGINT)
        starting.read_until("Stopped")
        assert starting.process.wait() == 0
    assert wait_until_ended(family) == []


async def stored_hash_matches(variables: dict[str, str], password: str) -> bool:
    settings = load_settings(variables)
    place = load_config(DataDir(settings.general.data_dir), settings)
    connection = await connect(environment(place)["CODEHUB_DATABASE_URL"])
    try:
        row = await connection.fetchrow("SELECT password_hash, role FROM users WHERE username = 'admin'")
    finally:
        await connection.close()
    assert row["role"] == "admin"
    assert row["password_hash"].startswith("$argon2id$")
    return PasswordHasher().verify(row["password_hash"], password)


def everything_below(directory: Path) -> str:
    return "".join(file.read_text(errors="replace") for file in directory.iterdir())
