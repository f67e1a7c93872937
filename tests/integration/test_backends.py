"""A worker refuses a database with workspaces of another backend: it would consider their homes lost."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping

import pytest

from codehub.db.home_store import backends_in_use
from codehub.db.session import Database
from codehub.services.home_store import WrongBackend, require_backend
from testkit.rows import NOW, add_user, add_workspace
from testkit.temporal_server import TemporalServer

GONE = {"phase": "DELETED", "desired_state": "DELETED", "deleted_at": NOW}
BEING_DELETED = {**GONE, "phase": "STANDBY"}


async def test_an_empty_database_works_with_every_backend(database: Database) -> None:
    async with database.transaction() as session:
        assert await backends_in_use(session) == set()
        await require_backend(session, "local-docker")


async def test_deleted_workspaces_have_no_home(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        await add_workspace(session, owner, instance_backend="k8s", **GONE)
        assert await backends_in_use(session) == set()


@pytest.mark.parametrize("columns", [{}, BEING_DELETED, {"phase": "ARCHIVED"}])
async def test_every_other_workspace_counts(database: Database, columns: dict[str, str]) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        for _ in range(2):
            await add_workspace(session, owner, instance_backend="local-docker", **columns)
        assert await backends_in_use(session) == {"local-docker"}
        await require_backend(session, "local-docker")
        with pytest.raises(WrongBackend):
            await require_backend(session, "local")


async def test_two_backends_in_one_database_are_refused(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        await add_workspace(session, owner, instance_backend="local-docker")
        await add_workspace(session, owner, instance_backend="local")
        for configured in ("local", "local-docker"):
            with pytest.raises(WrongBackend, match="use a database for each backend"):
                await require_backend(session, configured)


@pytest.mark.parametrize(("stored", "configured"), [("local", "local-docker"), ("local-docker", "local")])
async def test_a_worker_of_another_backend_exits_with_an_explanation(
    database: Database, database_url: str, temporal_server: TemporalServer, stored: str, configured: str
) -> None:
    async with database.transaction() as session:
        await add_workspace(session, await add_user(session), instance_backend=stored)
    variables = {"CODEHUB_WORKSPACES_INSTANCE_BACKEND": configured}
    run = await _run_worker(database_url, temporal_server, variables)
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1] == (
        f"The database holds workspaces of the backend {stored}, but CodeHub is set to run {configured}, "
        f"which does not have their homes: set CODEHUB_WORKSPACES_INSTANCE_BACKEND={stored}, "
        "or delete those workspaces first."
    )
    assert "Traceback" not in run.stderr


async def test_a_worker_without_a_sandbox_exits_if_there_are_several_accounts(
    database: Database, database_url: str, temporal_server: TemporalServer
) -> None:
    async with database.transaction() as session:
        for _ in range(2):
            await add_user(session)
    variables = {
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
        "CODEHUB_LOCAL_UNSAFE_NO_SANDBOX": "true",
    }
    run = await _run_worker(database_url, temporal_server, variables)
    assert (run.returncode, "only one account" in run.stderr) == (2, True)
    assert "Traceback" not in run.stderr


async def _run_worker(
    database_url: str, temporal_server: TemporalServer, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a worker that does not start."""
    servers = {
        "CODEHUB_DATABASE_URL": database_url,
        "CODEHUB_TEMPORAL_ADDRESS": temporal_server.address,
    }
    return await asyncio.to_thread(
        subprocess.run,
        (sys.executable, "-m", "worker"),
        env={**servers, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
