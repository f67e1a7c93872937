"""From M1 to a running CodeHub: the database, the homes, and workers that do not start too early."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from codehub.bootstrap import connect_temporal, open_database
from codehub.domain.conditions import Snapshot
from codehub.domain.states import ErrorReason, Phase
from codehub.settings import load_settings
from migrations import runner
from testkit.deployment import BIN, Deployment, Servers, clone_database, register_namespace
from testkit.trees import describe_tree, without_owners
from testkit.waiting import until
from tests.codehub_command import run_codehub
from tests.m1.leftovers import ANN, IDS, fill_database, make_homes

REFUSED = 2


@pytest.fixture
async def deployment(servers: Servers, tmp_path: Path) -> AsyncIterator[Deployment]:
    """Start a CodeHub whose database is an untouched one of M1."""
    shared, name = servers.stack.environment, f"m1_{uuid4().hex}"
    url = await clone_database(shared["CODEHUB_DATABASE_URL"], "template1", name)
    await fill_database(url)
    environment = {
        **{key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ},
        **shared,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "CODEHUB_DATABASE_URL": url,
        "CODEHUB_TEMPORAL_NAMESPACE": name,
        "CODEHUB_S3_BUCKET": name.replace("_", "-"),
        "CODEHUB_DATA_DIR": str(tmp_path / "data"),
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
        "CODEHUB_SWEEPS_OBSERVE_SECONDS": "1",
        "CODEHUB_LIMITS_MAX_RUNNING_PER_USER": "10",
    }
    (tmp_path / "data").mkdir()
    settings = load_settings(environment)
    await register_namespace(settings)
    async with open_database(settings) as database:
        yield Deployment(settings, environment, await connect_temporal(settings), database, ANN)


async def migrate(deployment: Deployment, *arguments: str) -> str:
    run = await run_codehub(deployment.environment, "migrate", *arguments)
    assert run.code == 0, run.output
    return run.stdout


async def all_snapshots(deployment: Deployment) -> dict[str, Snapshot]:
    return {status: await deployment.look(workspace_id) for status, workspace_id in IDS.items()}


async def worker_ends(deployment: Deployment) -> int:
    with deployment.worker_process() as worker:

        async def ended() -> bool:
            return worker.poll() is not None

        await until(ended, "the worker ended")
        return int(worker.returncode)


@pytest.mark.timeout(600)
async def test_all_homes_of_m1_are_available(deployment: Deployment, tmp_path: Path) -> None:
    homes = make_homes(tmp_path / "m1")
    before = {status: describe_tree(home) for status, home in homes.items()}
    await migrate(deployment)
    carried_over = await all_snapshots(deployment)
    assert await worker_ends(deployment) == REFUSED
    log = Path(deployment.environment["CODEHUB_DATA_DIR"]) / "worker.log"
    assert "codehub migrate --import-homes DIR" in log.read_text()
    assert await all_snapshots(deployment) == carried_over
    await migrate(deployment, "--import-homes", str(tmp_path / "m1"))
    with deployment.worker_process():
        for status in ("CREATED", "PROVISIONING", "RUNNING"):
            await deployment.wait_for_phase(IDS[status], Phase.RUNNING)
        for status in ("STOPPING", "STOPPED"):
            await deployment.wait_for_phase(IDS[status], Phase.STANDBY)
            assert deployment.describe_home(IDS[status]) == without_owners(before[status])
        await expect_what_waits_for_a_person(deployment)
        assert (deployment.home(IDS["RUNNING"]) / "notes.txt").read_text() == "RUNNING in M1"
        for status in ("CREATED", "PROVISIONING", "RUNNING"):
            await deployment.delete(IDS[status], purge=True)
            await deployment.wake(IDS[status])
            await deployment.wait_for_phase(IDS[status], Phase.DELETED)
    assert {status: describe_tree(home) for status, home in homes.items()} == before


async def expect_what_waits_for_a_person(deployment: Deployment) -> None:
    """Errors of M1 are still errors with safe files, and a deletion that M1 had begun is finished."""
    broken = await deployment.look(IDS["ERROR"])
    assert (broken.phase, broken.error_reason) == (Phase.ERROR, ErrorReason.RETRY_EXCEEDED)
    assert broken.archive_key is not None
    assert (await deployment.look(IDS["DELETING"])).phase is Phase.DELETED


@pytest.mark.timeout(600)
async def test_the_owner_decides_about_a_home_that_was_given_up(
    deployment: Deployment, tmp_path: Path
) -> None:
    make_homes(tmp_path / "m1")["STOPPED"].rename(tmp_path / "elsewhere")
    await migrate(deployment, "--import-homes", str(tmp_path / "m1"), "--accept-missing")
    with deployment.worker_process():

        async def lost() -> bool:
            return (await deployment.look(IDS["STOPPED"])).error_reason is ErrorReason.DATA_LOST

        # Only the full check of the sweep notices a workspace that seems to have converged.
        await until(lost, "the loss is found")
        for status in ("CREATED", "PROVISIONING", "RUNNING"):
            await deployment.wait_for_phase(IDS[status], Phase.RUNNING)
            await deployment.delete(IDS[status], purge=True)
            await deployment.wake(IDS[status])
            await deployment.wait_for_phase(IDS[status], Phase.DELETED)


async def test_going_back_to_m1_is_possible_until_the_homes_are_imported(
    deployment: Deployment, tmp_path: Path
) -> None:
    make_homes(tmp_path / "m1")
    await migrate(deployment)
    await deployment.database.close()
    await migrate(deployment, "--to", "0001_m1")
    await migrate(deployment, "--import-homes", str(tmp_path / "m1"))
    url = deployment.environment["CODEHUB_DATABASE_URL"]
    run = await run_codehub(deployment.environment, "migrate", "--to", "0001_m1")
    assert run.code == 1
    assert "The previous version cannot open homes that are archived" in run.stderr
    assert (await runner.upgrade(url)).after == runner.revisions()[-1]
