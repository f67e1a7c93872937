"""The idle queries agree with the idle rule of the domain."""

import random
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import insert

from codehub.db.models import Workspace
from codehub.db.session import Database
from codehub.db.sweeps import Ttl, due_for_archive, due_for_standby
from codehub.domain.limits import IdleTimes, Usage, idle_target, idle_times
from codehub.domain.states import DesiredState, Operation, Phase
from testkit.rows import NOW, add_user, new_workspace_id

DEFAULTS = IdleTimes(standby=timedelta(seconds=600), archive=timedelta(seconds=1800))
LONGEST = IdleTimes(standby=timedelta(seconds=2000), archive=timedelta(seconds=2500))
STANDBY = Ttl(DEFAULTS.standby, LONGEST.standby)
ARCHIVE = Ttl(DEFAULTS.archive, LONGEST.archive)
ROWS = 3000


def random_moment(rng: random.Random) -> datetime:
    """Return a random time, often exactly at a boundary of the defaults."""
    exact = rng.choice([0, 599, 600, 601, 1799, 1800, 1801])
    return NOW - timedelta(seconds=rng.choice([exact, rng.randrange(4000)]))


def random_row(rng: random.Random) -> dict[str, Any]:
    operation = rng.choice([Operation.NONE, Operation.NONE, Operation.NONE, Operation.STOPPING])
    phase = rng.choice([Phase.RUNNING, Phase.RUNNING, Phase.STANDBY, Phase.STANDBY, Phase.ARCHIVED])
    desired = rng.choice([DesiredState(phase), DesiredState.RUNNING, DesiredState.STANDBY])
    return {
        "id": new_workspace_id(),
        "phase": phase,
        "desired_state": desired,
        "operation": operation,
        "op_started_at": None if operation is Operation.NONE else NOW,
        "phase_changed_at": random_moment(rng),
        "last_access_at": rng.choice([None, random_moment(rng)]),
        "standby_ttl_seconds": rng.choice([None, 1, 300, 3000]),
        "archive_ttl_seconds": rng.choice([None, 1, 300, 3000]),
    }


def target(row: dict[str, Any]) -> DesiredState | None:
    """Return the result of the rule in the domain."""
    usage = Usage(
        row["phase"], row["operation"], row["desired_state"], row["last_access_at"], row["phase_changed_at"]
    )
    standby, archive = row["standby_ttl_seconds"], row["archive_ttl_seconds"]
    return idle_target(usage, idle_times(standby, archive, DEFAULTS, LONGEST), NOW)


async def add_rows(database: Database, rows: list[dict[str, Any]]) -> None:
    async with database.transaction() as session:
        constant = {
            "name": "-",
            "image_ref": "-",
            "instance_backend": "-",
            "storage_backend": "-",
            "home_store_key": "-",
        }
        owner = await add_user(session)
        await session.execute(
            insert(Workspace), [{**constant, "owner_user_id": owner, **row} for row in rows]
        )


async def test_database_finds_the_workspaces_that_the_domain_considers_idle(database: Database) -> None:
    rng = random.Random(20260701)  # noqa: S311
    rows = [random_row(rng) for _ in range(ROWS)]
    await add_rows(database, rows)
    async with database.transaction() as session:
        standby = await due_for_standby(session, NOW, STANDBY, ROWS)
        archive = await due_for_archive(session, NOW, ARCHIVE, ROWS)
    assert set(standby) == {row["id"] for row in rows if target(row) is DesiredState.STANDBY}
    assert set(archive) == {row["id"] for row in rows if target(row) is DesiredState.ARCHIVED}
    assert min(len(standby), len(archive)) > 100


async def test_deleted_workspaces_are_never_idle(database: Database) -> None:
    row = {**random_row(random.Random(1)), "phase": "RUNNING", "operation": "NONE", "op_started_at": None}  # noqa: S311
    await add_rows(database, [{**row, "desired_state": "DELETED", "deleted_at": NOW}])
    async with database.transaction() as session:
        assert await due_for_standby(session, NOW + timedelta(days=9), STANDBY, 1) == []


async def test_owners_take_turns_when_not_all_can_be_archived(database: Database) -> None:
    row = {"phase": "STANDBY", "desired_state": "STANDBY"}
    owners = [[new_workspace_id() for _ in range(count)] for count in (5, 1, 2)]
    for number, ids in enumerate(owners):
        # The workspaces of the first owner have been idle for longest, and would fill every sweep.
        since = NOW - timedelta(seconds=9000 - number)
        await add_rows(database, [{**row, "id": each, "phase_changed_at": since} for each in ids])
    async with database.transaction() as session:
        due = await due_for_archive(session, NOW, ARCHIVE, 6)
    assert [sum(each in due for each in ids) for ids in owners] == [3, 1, 2]


async def test_workspaces_idle_for_longest_come_first(database: Database) -> None:
    ages = [5000, 9000, 7000]
    row = {"phase": "STANDBY", "desired_state": "STANDBY"}
    rows = [
        {**row, "id": new_workspace_id(), "phase_changed_at": NOW - timedelta(seconds=age)} for age in ages
    ]
    await add_rows(database, rows)
    async with database.transaction() as session:
        due = await due_for_archive(session, NOW, ARCHIVE, 2)
    assert due == [rows[1]["id"], rows[2]["id"]]
