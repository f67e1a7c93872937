"""The two commands of the README work on a Debian with only python3, make and git."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import volume_name
from codehub.embedded.data_dir import DataDir
from codehub.embedded.free_ports import choose_ports
from testkit.waiting import until
from tests.bare_machine.machine import BareMachine, bare_machine
from tests.e2e.harness import PASSWORD, READY

pytestmark = pytest.mark.timeout(1200)
PROGRAMS = ("git", "make", "python3", "tar")
MISSING_PROGRAMS = ("bwrap", "chromium", "curl", "docker", "zstd")
# Some need nothing else, some need what is missing.
CHOSEN_TESTS = (
    "tests/unit/test_storage_job_compression.py",
    "tests/adversarial/test_decompression_bombs.py",
    "tests/contracts/test_storage_jobs.py",
    "tests/deploy/test_monitoring.py",
    "tests/e2e/test_api_tour.py",
    "tests/e2e/test_dashboard_sign_in.py",
    "tests/images",
    "tests/bare_machine",
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareMachine]:
    with bare_machine(tmp_path_factory.mktemp("bare")) as installed:
        yield installed


def test_the_machine_has_no_other_programs(machine: BareMachine) -> None:
    names = " ".join((*MISSING_PROGRAMS, *PROGRAMS))
    found = machine.run(f"for name in {names}; do command -v $name; done").stdout.splitlines()
    assert found == [f"/usr/bin/{name}" for name in PROGRAMS]


async def test_make_up_creates_archives_and_restores_a_workspace(
    machine: BareMachine, tmp_path: Path
) -> None:
    log = tmp_path / "up.log"

    def codehub(*arguments: str, stdin: str = "") -> str:
        run = machine.run(f".venv/bin/codehub {' '.join(arguments)}", stdin)
        assert run.returncode == 0, run.stdout + log.read_text()
        return run.stdout

    # `make up` would do this too, but it can take longer than the deadlines below.
    assert machine.run("make .venv/.synced").returncode == 0
    ports = choose_ports(["api", "proxy"], {})
    settings = {f"CODEHUB_{name.upper()}_PORT": str(port) for name, port in ports.items()}
    with machine.running("make up", log, settings) as up:

        async def ready() -> bool:
            assert up.poll() is None, log.read_text()
            return READY in log.read_text()

        await until(ready, "make up is ready")
        assert "missing" not in log.read_text()
        password = PASSWORD.search(log.read_text())
        assert password is not None
        url = f"http://127.0.0.1:{ports['proxy']}"
        codehub("login", "--user admin --password-stdin --url", url, stdin=f"{password[1]}\n")
        codehub("ws create first --wait")
        home = home_of(machine, json.loads(codehub("ws show first --json"))["id"])
        (home / "thesis").write_text("three years of work")
        codehub("ws archive first --wait")
        assert not home.exists()
        codehub("ws start first --wait")
        assert (home / "thesis").read_text() == "three years of work"
        codehub("down")
        assert up.wait() == 0, log.read_text()


def home_of(machine: BareMachine, workspace_id: str) -> Path:
    homes = DataDir(machine.source / ".codehub").local_homes
    return homes / "volumes" / volume_name(WorkspaceId(workspace_id))


def test_pytest_collects_every_test_and_prints_one_line_for_each_missing_requirement(
    machine: BareMachine,
) -> None:
    collected = machine.run("make .venv/.synced && .venv/bin/pytest --quiet --collect-only tests")
    assert collected.returncode == 0, collected.stdout
    run = machine.run(f".venv/bin/pytest --quiet {' '.join(CHOSEN_TESTS)}")
    assert run.returncode == 0, run.stdout
    missing = [line.partition(" skipped: ")[2] for line in run.stdout.splitlines() if " skipped: " in line]
    assert missing == [
        "chromium is missing: apt-get install chromium",
        "curl is missing: apt-get install curl",
        "docker is missing: apt-get install docker.io",
        "docker-compose is missing: apt-get install docker-compose",
        "mmdebstrap is missing: apt-get install mmdebstrap",
        "promtool is missing: apt-get install prometheus",
    ]
