"""Upgrading the data of M1 to M2, and downgrading it again."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from codehub.db.session import Database, connect, create_engine
from codehub.db.snapshots import load_snapshot
from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    Observation,
    Snapshot,
    VolumeFact,
    WorkspaceId,
)
from codehub.domain.judge import judge, phase_of
from codehub.domain.planner import Decision, Plan, plan
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from migrations import runner
from testkit import postgres

M1 = "0001_m1"
NOW = datetime(2026, 7, 1, tzinfo=UTC)
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
OWNER = uuid4()
STATUSES = ("CREATED", "PROVISIONING", "RUNNING", "STOPPING", "STOPPED", "DELETING", "ERROR", "DELETED")
IDS = {case: uuid4() for case in (*STATUSES, "STOPPED, deleted")}
DELETED_AT = {"DELETED": NOW, "STOPPED, deleted": NOW}

ROWS = "SELECT * FROM workspaces ORDER BY id"


async def fill_m1(url: str) -> None:
    """Add one workspace in each state of M1."""
    await runner.upgrade(url, M1)
    connection = await connect(url)
    await connection.execute("INSERT INTO users (id, username, password_hash) VALUES ($1, 'ann', '-')", OWNER)
    for case, workspace_id in IDS.items():
        await connection.execute(
            "INSERT INTO workspaces (id, owner_user_id, name, memo, image_ref, instance_backend, "
            "storage_backend, home_store_key, status, created_at, updated_at, deleted_at) "
            "VALUES ($1, $2, $3, 'memo', 'image', 'local', 'local-dir', 'key', $4, $5, $5, $6)",
            workspace_id,
            OWNER,
            case,
            case.partition(",")[0],
            LONG_AGO,
            DELETED_AT.get(case),
        )
    await connection.close()


async def fetch(url: str, query: str, *arguments: object) -> list[dict[str, Any]]:
    connection = await connect(url)
    rows = await connection.fetch(query, *arguments)
    await connection.close()
    return [dict(row) for row in rows]


async def execute(url: str, statement: str, *arguments: object) -> None:
    connection = await connect(url)
    await connection.execute(statement, *arguments)
    await connection.close()


async def load(url: str, workspace_id: UUID) -> Snapshot:
    async with Database(create_engine(url)) as database, database.transaction() as session:
        snapshot = await load_snapshot(session, WorkspaceId(str(workspace_id)))
    assert snapshot is not None
    return snapshot


@pytest.fixture(scope="module")
async def carried_over(postgres_server: postgres.Server) -> AsyncIterator[str]:
    """Yield a database of M1 after the upgrade; tests only read it."""
    async with postgres.new_database(postgres_server) as url:
        await fill_m1(url)
        await runner.upgrade(url)
        yield url


WAIT, RUN = Decision.WAIT, Decision.RUN
CARRIED_OVER = {
    "CREATED": (Phase.PENDING, DesiredState.RUNNING, Plan(WAIT, Operation.PROVISIONING)),
    "PROVISIONING": (Phase.STANDBY, DesiredState.RUNNING, Plan(WAIT, Operation.STARTING)),
    "RUNNING": (Phase.RUNNING, DesiredState.RUNNING, Plan(Decision.CONVERGED)),
    "STOPPING": (Phase.RUNNING, DesiredState.STANDBY, Plan(RUN, Operation.STOPPING)),
    "STOPPED": (Phase.STANDBY, DesiredState.STANDBY, Plan(Decision.CONVERGED)),
    "ERROR": (Phase.ERROR, DesiredState.STANDBY, Plan(Decision.HALT)),
    "DELETING": (Phase.DELETING, DesiredState.DELETED, Plan(WAIT, Operation.DELETING)),
    "STOPPED, deleted": (Phase.DELETING, DesiredState.DELETED, Plan(WAIT, Operation.DELETING)),
    "DELETED": (Phase.DELETED, DesiredState.DELETED, Plan(Decision.CONVERGED)),
}


@pytest.mark.parametrize("case", IDS)
async def test_every_state_of_m1_is_converted(carried_over: str, case: str) -> None:
    snapshot = await load(carried_over, IDS[case])
    assert (snapshot.phase, snapshot.desired_state, plan(snapshot)) == CARRIED_OVER[case]
    assert phase_of(snapshot) is snapshot.phase


AFTER_A_LOOK_THAT_FINDS_NOTHING = {
    "CREATED": (Phase.PENDING, None),
    "PROVISIONING": (Phase.ERROR, ErrorReason.DATA_LOST),
    "RUNNING": (Phase.ERROR, ErrorReason.DATA_LOST),
    "STOPPING": (Phase.ERROR, ErrorReason.DATA_LOST),
    "STOPPED": (Phase.ERROR, ErrorReason.DATA_LOST),
    "ERROR": (Phase.ERROR, ErrorReason.DATA_LOST),
    "DELETING": (Phase.DELETED, None),
    "STOPPED, deleted": (Phase.DELETED, None),
    "DELETED": (Phase.DELETED, None),
}


@pytest.mark.parametrize("case", IDS)
async def test_home_of_m1_is_not_replaced_by_an_empty_one(carried_over: str, case: str) -> None:
    nothing = Observation(ContainerFact.ABSENT, VolumeFact.ABSENT, ArchiveFact.ABSENT)
    judged = judge(await load(carried_over, IDS[case]), nothing, NOW)
    assert (judged.phase, judged.error_reason) == AFTER_A_LOOK_THAT_FINDS_NOTHING[case]


@pytest.mark.parametrize("case", IDS)
async def test_home_of_m1_is_found_again(carried_over: str, case: str) -> None:
    there = Observation(ContainerFact.ABSENT, VolumeFact.PRESENT, ArchiveFact.ABSENT)
    judged = judge(await load(carried_over, IDS[case]), there, NOW)
    expected = {"ERROR": Phase.ERROR} | dict.fromkeys(
        ("DELETING", "DELETED", "STOPPED, deleted"), Phase.DELETING
    )
    assert judged.phase is expected.get(case, Phase.STANDBY)


async def test_nothing_becomes_idle_by_the_migration(carried_over: str) -> None:
    [row] = await fetch(
        carried_over, "SELECT min(phase_changed_at) > now() - interval '1 hour' AS fresh FROM workspaces"
    )
    assert row["fresh"]


async def test_deletion_keeps_its_time_or_gets_the_time_of_the_last_change(carried_over: str) -> None:
    rows = await fetch(carried_over, "SELECT name, deleted_at FROM workspaces WHERE deleted_at IS NOT NULL")
    assert {row["name"]: row["deleted_at"] for row in rows} == {**DELETED_AT, "DELETING": LONG_AGO}


async def test_upgrade_and_downgrade_restore_every_row_of_m1(empty_database_url: str) -> None:
    await fill_m1(empty_database_url)
    before = await fetch(empty_database_url, ROWS)
    await runner.upgrade(empty_database_url)
    await runner.downgrade(empty_database_url, M1)
    after = await fetch(empty_database_url, ROWS)
    for row in before:
        row["home_ctx"] = "{}"
        # In M2 a deletion always has a time, and has begun.
        if row["status"] in {"DELETING", "DELETED"} or row["deleted_at"]:
            row["deleted_at"] = row["deleted_at"] or LONG_AGO
            row["status"] = row["status"] if row["status"] == "DELETED" else "DELETING"
    assert after == before


async def test_upgrade_after_a_downgrade_is_the_same_as_before(empty_database_url: str) -> None:
    query = (
        "SELECT id, name, memo, phase, desired_state, deleted_at, error_reason FROM workspaces ORDER BY id"
    )
    await fill_m1(empty_database_url)
    await runner.upgrade(empty_database_url)
    first = await fetch(empty_database_url, query)
    await runner.downgrade(empty_database_url, M1)
    await runner.upgrade(empty_database_url)
    assert await fetch(empty_database_url, query) == first


async def test_downgrade_to_nothing_leaves_no_table(empty_database_url: str) -> None:
    await runner.upgrade(empty_database_url)
    change = await runner.downgrade(empty_database_url, "base")
    assert change == runner.Change(runner.find_revision("head"), None)
    tables = await fetch(
        empty_database_url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    )
    assert {row["relname"] for row in tables} == {"alembic_version", "alembic_version_pkc"}


async def test_workspace_that_m1_writes_during_the_migration_is_converted(empty_database_url: str) -> None:
    await fill_m1(empty_database_url)
    await runner.upgrade(empty_database_url, "0006_notify")
    await execute(
        empty_database_url, "UPDATE workspaces SET status = 'STOPPED' WHERE id = $1", IDS["RUNNING"]
    )
    await runner.upgrade(empty_database_url)
    snapshot = await load(empty_database_url, IDS["RUNNING"])
    assert (snapshot.phase, snapshot.desired_state) == (Phase.STANDBY, DesiredState.STANDBY)
