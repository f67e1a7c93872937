"""`codehub up` announces the backend, passes it to its processes, and keeps it."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from codehub.db.session import Database, create_engine
from codehub.embedded.backends import record_backend, recorded_backend
from codehub.embedded.data_dir import DataDir
from codehub.embedded.free_ports import choose_ports
from codehub.embedded.servers.registry import environment, load_config
from codehub.settings import load_settings
from testkit.rows import add_user, add_workspace
from testkit.waiting import until
from tests.codehub_command import Up, codehub, settings_for_up, up
from tests.stand_in_engine import StandInEngine, stand_in_engine

IMAGES = ("codehub-workspace:latest", "codehub-storage-job:latest")
VARIABLE = "CODEHUB_WORKSPACES_INSTANCE_BACKEND"
ON_THIS_MACHINE = "Workspaces run as processes on this machine"
IN_DOCKER = "Workspaces run as Docker containers (codehub-workspace:latest)."


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path / "data")


@pytest.fixture
def without_docker(data: DataDir, tmp_path: Path) -> dict[str, str]:
    ports = choose_ports(["api", "proxy"], {})
    return settings_for_up(
        data.root,
        CODEHUB_DOCKER_URL=f"unix://{tmp_path}/none.sock",
        CODEHUB_API_PORT=str(ports["api"]),
        CODEHUB_PROXY_PORT=str(ports["proxy"]),
    )


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[StandInEngine]:
    async with stand_in_engine(tmp_path / "docker.sock", IMAGES) as running:
        yield running


@pytest.fixture
def with_docker(without_docker: dict[str, str], engine: StandInEngine) -> dict[str, str]:
    return {**without_docker, "CODEHUB_DOCKER_URL": engine.url}


async def says(running: Up, pattern: str) -> str:
    """Run in a thread, because the stand-in engine lives in this process."""
    return (await asyncio.to_thread(running.read_until, pattern)).rstrip()


async def keeps_backend(data: DataDir) -> None:
    async def recorded() -> bool:
        return data.backend.exists()

    await until(recorded, "the backend is recorded")


async def stop(running: Up) -> None:
    running.process.send_signal(signal.SIGINT)
    await says(running, "Stopped")
    assert await asyncio.to_thread(running.process.wait) == 0


async def add_row(variables: dict[str, str], data: DataDir, **columns: str) -> None:
    url = environment(load_config(data, load_settings(variables)))["CODEHUB_DATABASE_URL"]
    async with Database(create_engine(url, pool_size=1)) as database, database.transaction() as session:
        await add_workspace(session, await add_user(session), **columns)


async def test_a_new_directory_uses_docker_if_it_works(with_docker: dict[str, str], data: DataDir) -> None:
    with up(with_docker) as first:
        assert await says(first, "Workspaces run") == IN_DOCKER
        await says(first, "PostgreSQL +running")

        async def worker_runs() -> bool:
            return worker_environment(with_docker) is not None

        await until(worker_runs, "the worker is started")
        assert worker_environment(with_docker) == "local-docker"
        assert "Workspaces run as Docker containers.\n" in codehub(with_docker, "status").stdout
        await stop(first)
    assert recorded_backend(data) == "local-docker"


async def test_the_backend_stays_local_when_docker_becomes_available(
    with_docker: dict[str, str], without_docker: dict[str, str], data: DataDir
) -> None:
    with up(without_docker) as first:
        assert await says(first, "Workspaces run") == f"{ON_THIS_MACHINE}: Docker does not answer."
        await keeps_backend(data)
        await add_row(without_docker, data, instance_backend="local")
        await stop(first)
    with up(with_docker) as second:
        assert await says(second, "Workspaces run") == f"{ON_THIS_MACHINE}, as before."
        await stop(second)
    with up({**with_docker, VARIABLE: "local-docker"}) as third:
        assert await says(third, "Workspaces run") == IN_DOCKER
        await says(third, f"holds workspaces of the backend local, .* set {VARIABLE}=local, or delete")
        assert await asyncio.to_thread(third.process.wait) == 1
    assert recorded_backend(data) == "local"


async def test_homes_of_m1_are_imported_before_anything_observes_them(
    without_docker: dict[str, str], data: DataDir
) -> None:
    with up(without_docker) as first:
        await keeps_backend(data)
        await add_row(without_docker, data, home_store_key="users/ann/workspaces/one/home", phase="STANDBY")
        await stop(first)
    with up(without_docker) as refused:
        await says(refused, "The homes of 1 workspaces .* still in the directories of M1: import them with")
        assert await asyncio.to_thread(refused.process.wait) == 1
    with up(without_docker, "--servers-only") as servers:
        await says(servers, "PostgreSQL +running")
        await stop(servers)


async def test_a_directory_of_an_older_version_stays_local(
    with_docker: dict[str, str], data: DataDir
) -> None:
    data.local_homes.mkdir(parents=True)
    with up(with_docker) as running:
        assert await says(running, "Workspaces run") == f"{ON_THIS_MACHINE}, as before."
        await stop(running)


async def test_homes_in_docker_need_docker(without_docker: dict[str, str], data: DataDir) -> None:
    data.create()
    record_backend(data, "local-docker")
    with up(without_docker) as refused:
        await says(
            refused, r"^The homes of this CodeHub are Docker volumes, but Docker does not answer: start"
        )
        assert await asyncio.to_thread(refused.process.wait) == 1
    assert not [line for line in refused.said if "running" in line]
    assert recorded_backend(data) == "local-docker"


async def test_missing_requirements_are_reported_before_anything_starts(
    without_docker: dict[str, str], data: DataDir, tmp_path: Path
) -> None:
    with up({**without_docker, "PATH": str(tmp_path)}) as refused:
        # A sandbox from PyPI cannot be tried as root if CodeHub itself is below /tmp.
        missing = r"tar \(apt-get install tar\)(, sandbox \(.+\))?"
        await says(refused, rf"^This machine does not have what workspaces need: {missing}\.$")
        assert await asyncio.to_thread(refused.process.wait) == 1
    assert not [line for line in refused.said if "running" in line]
    assert recorded_backend(data) is None


async def test_a_configured_docker_must_work(without_docker: dict[str, str], data: DataDir) -> None:
    with up({**without_docker, VARIABLE: "local-docker"}) as refused:
        await says(refused, f"^{VARIABLE} is local-docker, but Docker does not answer: .* to local")
        assert await asyncio.to_thread(refused.process.wait) == 1
    # Nothing was recorded, so the next start can choose another backend.
    assert recorded_backend(data) is None


async def test_images_are_pulled_before_the_start_is_abandoned(
    with_docker: dict[str, str], engine: StandInEngine
) -> None:
    engine.images.clear()
    with up(with_docker) as running:
        await says(running, "^Docker has no image codehub-workspace:latest: pulling it \\(at most 60 s\\)")
        sentence = await says(running, "Workspaces run")
        assert sentence == (
            f"{ON_THIS_MACHINE}: Docker has no image codehub-workspace:latest and cannot pull it "
            "(pull access denied, repository does not exist); `make images` builds it."
        )
        await stop(running)


async def test_ctrl_c_ends_a_pull(with_docker: dict[str, str], engine: StandInEngine, data: DataDir) -> None:
    engine.images.clear()
    engine.registry_answers.clear()

    async def pulling() -> bool:
        return bool(engine.pulled)

    with up(with_docker) as running:
        await until(pulling, "a pull is under way")
        await stop(running)
    assert recorded_backend(data) is None


async def test_moved_homes_are_refused_until_a_person_adopts_them(
    without_docker: dict[str, str], data: DataDir
) -> None:
    with up(without_docker) as first:
        await keeps_backend(data)
        await stop(first)
    data.local_homes.rename(data.root / "old-disk")
    data.local_homes.mkdir()
    with up(without_docker) as refused:
        await says(refused, "The homes of this database are in .* is empty or not mounted")
        assert await asyncio.to_thread(refused.process.wait) == 1
    with up(without_docker, "--servers-only") as servers:
        await says(servers, "PostgreSQL +running")
        adopted = await asyncio.to_thread(codehub, without_docker, "homes", "adopt", "--yes")
        assert adopted.exit_code == 0, adopted.output
        await stop(servers)
    with up(without_docker) as second:
        # The worker starts only after the home store has been checked.
        await says(second, "Worker +")
        await stop(second)


def worker_environment(variables: dict[str, str]) -> str | None:
    """Return the environment of the worker once it runs."""
    status = json.loads(codehub(variables, "status", "--json").stdout)
    pids = [part["pid"] for part in status["parts"] if part["name"] == "worker" and part["pid"]]
    try:
        return psutil.Process(pids[0]).environ()[VARIABLE] if pids else None
    except psutil.NoSuchProcess:
        return None
