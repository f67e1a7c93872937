"""The workflow reads what it stored, and changes only its own columns."""

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from codehub.db.models import Workspace
from codehub.db.session import Database
from codehub.db.snapshots import claim_operation, load_snapshot, save_observation
from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    Observation,
    Snapshot,
    VolumeFact,
    WorkspaceId,
)
from codehub.domain.judge import judge
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.domain.transitions import claim
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

LATER = NOW + timedelta(minutes=1)
RUNNING = Observation(ContainerFact.READY, VolumeFact.PRESENT, ArchiveFact.ABSENT)

OWNED_BY_THE_WORKFLOW = {
    "conditions",
    "observed_at",
    "version",
    "phase",
    "phase_changed_at",
    "operation",
    "op_started_at",
    "archive_op_id",
    "archive_key",
    "error_reason",
    "error_message",
    "error_count",
    "home_ctx",
}


async def add(database: Database, **columns: object) -> WorkspaceId:
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session), **columns)


async def load(database: Database, workspace_id: WorkspaceId) -> Snapshot:
    async with database.transaction() as session:
        snapshot = await load_snapshot(session, workspace_id)
    assert snapshot is not None
    return snapshot


async def save(database: Database, snapshot: Snapshot) -> None:
    async with database.transaction() as session:
        await save_observation(session, snapshot, LATER)


async def read_row(database: Database, workspace_id: WorkspaceId) -> dict[str, Any]:
    async with database.transaction() as session:
        statement = select(Workspace.__table__).where(Workspace.id == UUID(workspace_id))
        return dict((await session.execute(statement)).mappings().one())


async def test_unknown_workspace_has_no_snapshot(database: Database) -> None:
    async with database.transaction() as session:
        assert await load_snapshot(session, new_workspace_id()) is None


async def test_observation_is_read_as_it_was_stored(database: Database) -> None:
    workspace_id = await add(database, desired_state="RUNNING")
    judged = judge(await load(database, workspace_id), RUNNING, LATER)
    stored = replace(
        judged,
        operation=Operation.STARTING,
        archive_key="key",
        archive_op_id=str(uuid4()),
        restore_marker="marker",
        error_reason=ErrorReason.UNREACHABLE,
        error_message="Docker does not respond.",
        error_count=2,
    )
    await save(database, stored)
    loaded = await load(database, workspace_id)
    assert loaded.claimed_at is not None
    assert replace(loaded, claimed_at=None) == stored


async def test_observation_changes_only_what_the_workflow_owns(database: Database) -> None:
    workspace_id = await add(database, desired_state="RUNNING", home_ctx={"backend": "kept"})
    before = await read_row(database, workspace_id)
    judged = judge(await load(database, workspace_id), RUNNING, LATER)
    # As if the service layer wrote after the snapshot was loaded.
    stale = replace(judged, desired_state=DesiredState.STANDBY, deleted=True, purge=True)
    await save(database, replace(stale, operation=Operation.STOPPING, archive_op_id=str(uuid4())))
    after = await read_row(database, workspace_id)
    assert {column for column in after if after[column] != before[column]} <= OWNED_BY_THE_WORKFLOW
    assert after["home_ctx"] == {"backend": "kept", "restore_marker": None}


@pytest.mark.parametrize(("phase", "changed_at"), [("RUNNING", NOW), ("STANDBY", LATER)])
async def test_phase_changed_at_changes_only_with_the_phase(
    database: Database, phase: str, changed_at: object
) -> None:
    workspace_id = await add(database, phase="RUNNING", desired_state="RUNNING")
    await save(database, replace(await load(database, workspace_id), phase=Phase(phase)))
    row = await read_row(database, workspace_id)
    assert (row["phase_changed_at"], row["observed_at"]) == (changed_at, LATER)


@pytest.mark.parametrize(
    ("operation", "started_at"), [("STARTING", NOW), ("STOPPING", LATER), ("NONE", None)]
)
async def test_operation_keeps_its_start_until_it_ends(
    database: Database, operation: str, started_at: object
) -> None:
    workspace_id = await add(database, operation="STARTING", op_started_at=NOW)
    await save(database, replace(await load(database, workspace_id), operation=Operation(operation)))
    assert (await read_row(database, workspace_id))["op_started_at"] == started_at


async def test_claim_stores_what_the_domain_decided(database: Database) -> None:
    workspace_id = await add(database, home_ctx={"restore_marker": "old"}, archive_key="key")
    claimed = claim(await load(database, workspace_id), Operation.RESTORING, str(uuid4()))
    async with database.transaction() as session:
        assert await claim_operation(session, claimed, LATER)
    assert await load(database, workspace_id) == replace(claimed, claimed_at=LATER)
    assert claimed.restore_marker is None
    assert (await read_row(database, workspace_id))["op_started_at"] == LATER


async def test_of_fifty_concurrent_claims_one_wins(database: Database) -> None:
    workspace_id = await add(database)
    snapshot = await load(database, workspace_id)
    claims = [claim(snapshot, Operation.CREATE_EMPTY_ARCHIVE, str(uuid4())) for _ in range(50)]

    async def try_claim(claimed: Snapshot) -> bool:
        async with database.transaction() as session:
            return await claim_operation(session, claimed, LATER)

    won = await asyncio.gather(*(try_claim(claimed) for claimed in claims))
    assert won.count(True) == 1
    assert await load(database, workspace_id) == replace(claims[won.index(True)], claimed_at=LATER)


@pytest.mark.parametrize("for_update", [True, False])
async def test_row_is_locked_only_if_it_is_loaded_for_update(database: Database, for_update: bool) -> None:
    workspace_id = await add(database)
    lock_now = select(Workspace.id).with_for_update(nowait=True)
    async with database.transaction() as holder, database.transaction() as other:
        await load_snapshot(holder, workspace_id, for_update=for_update)
        with pytest.raises(DBAPIError, match="could not obtain lock") if for_update else nullcontext():
            await other.scalars(lock_now)
