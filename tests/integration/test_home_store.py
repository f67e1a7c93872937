"""The home store is recorded once; another one is refused unless a person adopts it."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from cli.doctor import examine
from cli.machine_checks import Finding
from cli.main import app
from codehub.adapters.local.root import LocalHomeStore
from codehub.adapters.local.volumes import LocalVolumes
from codehub.db.home_store import RecordedStore, load_home_store, load_homes
from codehub.db.session import Database, create_engine
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.services.guarded_providers import HomeGuard
from codehub.services.home_store import (
    Homes,
    WrongHomeStore,
    adopt_home_store,
    check_home_store,
    compare_home_stores,
    ensure_home_store,
)
from codehub.settings import load_settings
from testkit.fakes import FakeHomeStore, FakeVolumes, FakeWorld
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

COMPLETE = {"storage.volume_ready": {"status": "True", "reason": "Complete"}}
VANISHED = {"storage.volume_ready": {"status": "False", "reason": "Vanished"}}
GONE = {"phase": "DELETED", "desired_state": "DELETED", "deleted_at": NOW}
IN_ERROR = {"phase": "ERROR", "error_reason": "Timeout"}


def fake_homes(world: FakeWorld, location: str = "a fake store", backend: str = "local") -> Homes:
    return Homes(backend, FakeHomeStore(world, location), FakeVolumes(world))


def local_homes(path: Path) -> Homes:
    return Homes("local", LocalHomeStore(path), LocalVolumes(path))


async def add(database: Database, **columns: Any) -> WorkspaceId:  # noqa: ANN401 (whatever a row has)
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session), **columns)


async def recorded(database: Database) -> RecordedStore | None:
    async with database.transaction() as session:
        return await load_home_store(session)


async def test_the_first_start_records_the_store(database: Database) -> None:
    world = FakeWorld()
    await ensure_home_store(database, fake_homes(world))
    found = await recorded(database)
    assert found is not None
    assert (found.backend, found.identity, found.location) == ("local", world.identity, "a fake store")
    await ensure_home_store(database, fake_homes(world))
    assert await recorded(database) == found


async def test_of_two_stores_that_start_concurrently_exactly_one_wins(
    database: Database, tmp_path: Path
) -> None:
    stores = [local_homes(tmp_path / name) for name in ("one", "other")]
    starts = [ensure_home_store(database, stores[number % 2]) for number in range(10)]
    outcomes = await asyncio.gather(*starts, return_exceptions=True)
    kept = await recorded(database)
    assert kept is not None
    for number, outcome in enumerate(outcomes):
        is_winner = kept.identity == await stores[number % 2].store.read_identity()
        assert (outcome is None) if is_winner else isinstance(outcome, WrongHomeStore), outcome
    assert any(isinstance(outcome, WrongHomeStore) for outcome in outcomes)


async def test_another_store_is_refused_with_a_sentence_that_says_what_to_do(database: Database) -> None:
    await ensure_home_store(database, fake_homes(FakeWorld(), "the directory /a on alpha"))
    other = FakeWorld(identity="another one")
    with pytest.raises(WrongHomeStore) as caught:
        await ensure_home_store(database, fake_homes(other, "the directory /b on beta"))
    assert str(caught.value) == (
        "The homes of this database are in the directory /a on alpha, but the directory /b on beta is a "
        "different store, so every home would count as lost: start CodeHub where the homes are, or, if you "
        "have moved them, run `codehub homes adopt`."
    )


async def test_a_store_that_was_emptied_is_refused_and_not_set_up_again(database: Database) -> None:
    world = FakeWorld()
    homes = fake_homes(world)
    await ensure_home_store(database, homes)
    world.identity = None
    for check in (ensure_home_store, check_home_store):
        with pytest.raises(WrongHomeStore, match="a fake store is empty or not mounted, so every home"):
            await check(database, homes)
    assert world.identity is None


async def test_the_same_identity_of_another_backend_is_refused(database: Database) -> None:
    world = FakeWorld()
    await ensure_home_store(database, fake_homes(world))
    with pytest.raises(WrongHomeStore):
        await ensure_home_store(database, fake_homes(world, backend="local-docker"))


async def test_a_silent_store_does_not_prevent_a_later_start(database: Database) -> None:
    world = FakeWorld()
    homes = fake_homes(world)
    await ensure_home_store(database, homes)
    world.down.add(Resource.VOLUME)
    await ensure_home_store(database, homes)


async def test_the_first_start_needs_a_store_that_responds(database: Database) -> None:
    world = FakeWorld(down={Resource.VOLUME})
    with pytest.raises(Transient):
        await ensure_home_store(database, fake_homes(world))
    assert await recorded(database) is None


async def test_checking_records_nothing(database: Database) -> None:
    world = FakeWorld()
    await check_home_store(database, fake_homes(world))
    assert (world.identity, await recorded(database)) == (None, None)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"phase": "RUNNING", "desired_state": "RUNNING"}, True),
        ({"phase": "STANDBY"}, True),
        ({"phase": "STANDBY", "desired_state": "DELETED", "deleted_at": NOW}, True),
        ({"phase": "ARCHIVED", "conditions": COMPLETE}, True),
        ({**IN_ERROR, "conditions": COMPLETE}, True),
        ({**IN_ERROR, "conditions": VANISHED}, False),
        ({"phase": "ARCHIVED"}, False),
        ({"phase": "PENDING"}, False),
        (GONE, False),
    ],
)
async def test_the_row_says_whether_there_should_be_a_home(
    database: Database, columns: dict[str, Any], expected: bool
) -> None:
    workspace_id = await add(database, **columns)
    async with database.transaction() as session:
        assert await load_homes(session) == ({workspace_id} if expected else set())


async def test_an_older_database_accepts_the_store_that_has_its_homes(database: Database) -> None:
    homes = [await add(database, phase="STANDBY") for _ in range(3)]
    # One home is lost; its workspace will report that.
    world = FakeWorld(volumes={each: {} for each in homes[:2]})
    await ensure_home_store(database, fake_homes(world))
    found = await recorded(database)
    assert found is not None
    assert found.identity == world.identity


async def test_an_older_database_refuses_a_store_without_any_of_its_homes(database: Database) -> None:
    for _ in range(3):
        await add(database, phase="STANDBY")
    world = FakeWorld(volumes={new_workspace_id(): {}})
    with pytest.raises(WrongHomeStore) as caught:
        await ensure_home_store(database, fake_homes(world))
    assert str(caught.value) == (
        "None of the 3 homes of this database is in a fake store: start CodeHub where the homes are, or, if "
        "they are lost or you will move them, run `codehub homes adopt`."
    )
    assert (world.identity, await recorded(database)) == (None, None)


async def test_an_older_database_without_homes_accepts_any_store(database: Database) -> None:
    await add(database, phase="ARCHIVED")
    await ensure_home_store(database, fake_homes(FakeWorld()))
    assert await recorded(database) is not None


async def test_a_root_of_an_older_version_gets_an_identity_and_keeps_its_homes(
    database: Database, tmp_path: Path
) -> None:
    workspace_id = await add(database, phase="STANDBY")
    homes = local_homes(tmp_path)
    await homes.store.create_identity()
    await homes.volumes.provision(workspace_id)
    (tmp_path / ".codehub-root").write_bytes(b"")
    assert await homes.store.read_identity() is None
    await ensure_home_store(database, homes)
    assert await homes.store.read_identity()
    assert await homes.volumes.list_all() == [workspace_id]


async def test_a_person_can_adopt_another_store(database: Database) -> None:
    await ensure_home_store(database, fake_homes(FakeWorld()))
    here, away = [await add(database, phase="STANDBY") for _ in range(2)]
    other = fake_homes(FakeWorld(volumes={here: {}}), "a new store")
    compared = await compare_home_stores(database, other)
    assert (compared.identity, compared.expected, compared.present) == (None, 2, 1)
    await adopt_home_store(database, other, datetime.now(UTC))
    await ensure_home_store(database, other)
    found = await recorded(database)
    assert found is not None
    assert found.location == "a new store"
    assert away not in await other.volumes.list_all()


async def test_a_guard_that_cannot_read_the_record_fails_like_an_unreachable_provider() -> None:
    async with Database(create_engine("postgresql://nobody@127.0.0.1:9/none")) as away:
        guard = HomeGuard(away, "local", FakeHomeStore(FakeWorld(identity="one")))
        with pytest.raises(Transient) as caught:
            await guard.confirm()
    assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_observations_work_while_the_record_cannot_be_read_but_changes_do_not(
    database: Database,
) -> None:
    world = FakeWorld()
    await ensure_home_store(database, fake_homes(world))
    guard = HomeGuard(database, "local", FakeHomeStore(world), record_seconds=0)
    await guard.confirm()
    async with Database(create_engine("postgresql://nobody@127.0.0.1:9/none")) as away:
        guard.database = away
        await guard.confirm()
        with pytest.raises(Transient, match="PostgreSQL does not answer"):
            await guard.confirm(before_change=True)
        world.identity = "another one"
        with pytest.raises(Transient, match="PostgreSQL does not answer"):
            await guard.confirm()


async def test_there_is_only_one_record(database: Database) -> None:
    await ensure_home_store(database, fake_homes(FakeWorld()))
    async with database.transaction() as session:
        rows = await session.execute(text("SELECT count(*) FROM home_store"))
        assert rows.scalar_one() == 1


class Machine:
    """A machine with its own data directory, to run commands on."""

    def __init__(self, database_url: str, data_dir: Path) -> None:
        self.homes = local_homes(data_dir / "local")
        self.variables = {
            "CODEHUB_DATABASE_URL": database_url,
            "CODEHUB_DATA_DIR": str(data_dir),
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
            "CODEHUB_DOCKER_URL": "unix:///nonexistent/docker.sock",
        }

    async def adopt(self, *options: str) -> Result:
        command = ["homes", "adopt", *options]
        return await asyncio.to_thread(CliRunner().invoke, app, command, env=self.variables)

    async def doctor(self) -> Finding:
        findings = await asyncio.to_thread(lambda: list(examine(load_settings(self.variables))))
        return next(each for each in findings if each.name == "homes")


@pytest.fixture
def old(database_url: str, tmp_path: Path) -> Machine:
    return Machine(database_url, tmp_path / "old")


@pytest.fixture
def new(database_url: str, tmp_path: Path) -> Machine:
    return Machine(database_url, tmp_path / "new")


async def test_the_command_shows_both_stores_and_changes_nothing(
    database: Database, old: Machine, new: Machine
) -> None:
    await ensure_home_store(database, old.homes)
    homes = [await add(database, phase="STANDBY") for _ in range(2)]
    identity = await new.homes.store.create_identity()
    await new.homes.volumes.provision(homes[0])
    before = await recorded(database)
    assert before is not None
    shown = await new.adopt()
    assert shown.exit_code == 1
    for words in (
        f"recorded  local: {old.homes.store.location}",
        before.identity,
        f"found     local: {new.homes.store.location}",
        identity,
        "1 of the 2 expected homes exist here",
        "missing   1:",
        "Nothing was changed.",
        "--yes",
    ):
        assert words in shown.output
    assert await recorded(database) == before


async def test_moved_homes_are_adopted_on_request(database: Database, old: Machine, new: Machine) -> None:
    await ensure_home_store(database, old.homes)
    with pytest.raises(WrongHomeStore):
        await ensure_home_store(database, new.homes)
    adopted = await new.adopt("--yes")
    assert (adopted.exit_code, "Start CodeHub again." in adopted.output) == (0, True)
    await ensure_home_store(database, new.homes)
    with pytest.raises(WrongHomeStore, match="is a different store"):
        await ensure_home_store(database, old.homes)
    again = await new.adopt("--yes")
    assert (again.exit_code, "There is nothing to do" in again.output) == (0, True)


async def test_homes_of_another_backend_are_not_adopted(database: Database, new: Machine) -> None:
    await add(database, phase="STANDBY", instance_backend="local-docker")
    refused = await new.adopt("--yes")
    assert refused.exit_code == 1
    assert "holds workspaces of the backend local-docker" in refused.output
    assert await recorded(database) is None


async def test_the_command_says_how_to_start_the_database_alone(tmp_path: Path) -> None:
    variables = {"CODEHUB_DATA_DIR": str(tmp_path)}
    shown = await asyncio.to_thread(CliRunner().invoke, app, ["homes", "adopt"], env=variables)
    assert shown.exit_code == 1
    assert "codehub up --servers-only" in shown.output


async def test_doctor_reports_whether_the_homes_are_here(
    database: Database, old: Machine, new: Machine
) -> None:
    assert (await old.doctor()).detail == "none yet"
    await ensure_home_store(database, old.homes)
    found = await old.doctor()
    assert (found.found, found.detail) == (True, f"0 of 0 are in {old.homes.store.location}")
    other = await new.doctor()
    assert (other.found, other.required) == (False, True)
    assert f"{new.homes.store.location} is empty or not mounted" in other.detail
