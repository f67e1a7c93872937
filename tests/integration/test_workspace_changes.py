"""A PATCH is written completely or not at all, and a refusal says what to do."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from codehub.db.models import Workspace, WorkspaceEvent
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState, Operation
from codehub.services.deletion import undelete_workspace
from codehub.services.errors import (
    InvalidState,
    LimitExceeded,
    OperationInProgress,
    RequestRefused,
    VersionConflict,
    WorkspaceNotFound,
)
from codehub.services.requests import RequestContext
from codehub.services.workspaces import MetadataValues, patch_workspace
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

NOTHING: MetadataValues = {}
RENAME: MetadataValues = {"name": "new"}
STANDBY = {"phase": "STANDBY", "desired_state": "STANDBY"}
STARTING = {**STANDBY, "desired_state": "RUNNING", "operation": "STARTING", "op_started_at": NOW}
BROKEN = {"phase": "ERROR", "error_reason": "Timeout"}
DELETING = {"phase": "DELETING", "desired_state": "DELETED", "deleted_at": NOW}


async def add(database: Database, **columns: object) -> WorkspaceId:
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session), **columns)


async def patch(
    database: Database,
    workspace_id: WorkspaceId,
    change: MetadataValues = NOTHING,
    desired: DesiredState | None = None,
    expected_version: int | None = None,
    limits: RunningLimits = RunningLimits(),  # noqa: B008
) -> None:
    await patch_workspace(
        database,
        workspace_id,
        change,
        desired,
        expected_version=expected_version,
        context=RequestContext("ann", limits, NOW),
    )


async def read_row(database: Database, workspace_id: WorkspaceId) -> dict[str, Any]:
    async with database.transaction() as session:
        statement = select(Workspace.__table__).where(Workspace.id == UUID(workspace_id))
        return dict((await session.execute(statement)).mappings().one())


async def events(database: Database) -> list[tuple[str, str, object]]:
    columns = (WorkspaceEvent.kind, WorkspaceEvent.actor, WorkspaceEvent.detail)
    async with database.transaction() as session:
        rows = await session.execute(select(*columns).order_by(WorkspaceEvent.id))
        return [(row[0], row[1], row[2]) for row in rows]


async def test_metadata_and_state_are_written_together(database: Database) -> None:
    workspace_id = await add(database, **STANDBY, description="old", memo="kept", archive_ttl_seconds=9)
    before = await read_row(database, workspace_id)
    change = {"name": "new", "description": None, "standby_ttl_seconds": 60, "archive_ttl_seconds": None}
    await patch(database, workspace_id, change, DesiredState.RUNNING)
    after = await read_row(database, workspace_id)
    assert {column: value for column, value in after.items() if value != before[column]} == {
        "name": "new",
        "description": None,
        "standby_ttl_seconds": 60,
        "archive_ttl_seconds": None,
        "desired_state": "RUNNING",
        "updated_at": NOW,
        "version": 3,
    }
    fields = ["archive_ttl_seconds", "description", "name", "standby_ttl_seconds"]
    assert await events(database) == [
        ("metadata_changed", "ann", {"fields": fields}),
        ("state_requested", "ann", {"from": "STANDBY", "to": "RUNNING"}),
    ]


@pytest.mark.parametrize("columns", [STANDBY, STARTING, DELETING])
async def test_unchanged_values_are_not_written_and_never_refused(
    database: Database, columns: dict[str, object]
) -> None:
    workspace_id = await add(database, **columns, description="same")
    before = await read_row(database, workspace_id)
    desired = DesiredState(before["desired_state"])
    change = {"name": "home", "description": "same", "memo": None, "standby_ttl_seconds": None}
    await patch(database, workspace_id, change, None if desired is DesiredState.DELETED else desired)
    assert await read_row(database, workspace_id) == before
    assert await events(database) == []


@pytest.mark.parametrize("columns", [STARTING, BROKEN, DELETING])
async def test_metadata_can_change_during_any_operation(
    database: Database, columns: dict[str, object]
) -> None:
    workspace_id = await add(database, **columns)
    await patch(database, workspace_id, RENAME)
    assert (await read_row(database, workspace_id))["name"] == "new"
    assert await events(database) == [("metadata_changed", "ann", {"fields": ["name"]})]


@pytest.mark.parametrize(
    ("columns", "refusal"),
    [(STARTING, OperationInProgress), (BROKEN, InvalidState), (DELETING, InvalidState)],
)
async def test_refused_state_leaves_the_metadata_as_it_was(
    database: Database, columns: dict[str, object], refusal: type[RequestRefused]
) -> None:
    workspace_id = await add(database, **columns)
    before = await read_row(database, workspace_id)
    with pytest.raises(refusal):
        await patch(database, workspace_id, RENAME, DesiredState.STANDBY)
    assert await read_row(database, workspace_id) == before
    assert await events(database) == []


async def test_refusal_names_the_operation_and_its_start(database: Database) -> None:
    workspace_id = await add(database, **STARTING)
    with pytest.raises(OperationInProgress) as refusal:
        await patch(database, workspace_id, desired=DesiredState.ARCHIVED)
    assert (refusal.value.operation, refusal.value.since) == (Operation.STARTING, NOW)


async def test_a_workspace_that_is_being_deleted_must_be_undeleted_first_even_during_an_operation(
    database: Database,
) -> None:
    workspace_id = await add(database, **DELETING, operation="STOPPING", op_started_at=NOW)
    with pytest.raises(InvalidState, match="undelete"):
        await patch(database, workspace_id, desired=DesiredState.RUNNING)


async def test_an_undeleted_workspace_accepts_a_request_before_it_is_observed(database: Database) -> None:
    workspace_id = await add(
        database, phase="DELETED", desired_state="DELETED", deleted_at=NOW, archive_key="archive"
    )
    await undelete_workspace(database, workspace_id, context=RequestContext("ann", RunningLimits(), NOW))
    await patch(database, workspace_id, RENAME, DesiredState.RUNNING)
    assert (await read_row(database, workspace_id))["desired_state"] == "RUNNING"


async def test_limit_refuses_the_whole_request(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        await add_workspace(session, owner, phase="RUNNING", desired_state="RUNNING")
        workspace_id = await add_workspace(session, owner, **STANDBY)
    with pytest.raises(LimitExceeded):
        await patch(database, workspace_id, RENAME, DesiredState.RUNNING, limits=RunningLimits(per_user=1))
    assert (await read_row(database, workspace_id))["name"] == "home"


async def test_deleted_and_unknown_workspaces_are_not_found(database: Database) -> None:
    deleted = await add(database, **{**DELETING, "phase": "DELETED"})
    for workspace_id in (deleted, new_workspace_id()):
        with pytest.raises(WorkspaceNotFound):
            await patch(database, workspace_id, RENAME)


async def test_deleted_is_refused_as_a_desired_state(database: Database) -> None:
    workspace_id = await add(database)
    with pytest.raises(ValueError, match="use delete_workspace"):
        await patch(database, workspace_id, desired=DesiredState.DELETED)


async def test_expected_version_is_that_of_the_last_change(database: Database) -> None:
    workspace_id = await add(database)
    await patch(database, workspace_id, RENAME, expected_version=1)
    await patch(database, workspace_id, {"memo": "more"}, expected_version=2)
    with pytest.raises(VersionConflict) as refusal:
        await patch(database, workspace_id, RENAME, expected_version=2)
    assert refusal.value.current_version == 3


async def test_of_twenty_concurrent_patches_with_one_version_one_wins(database: Database) -> None:
    workspace_id = await add(database)
    results = await asyncio.gather(
        *(
            patch(database, workspace_id, {"name": f"name {number}"}, expected_version=1)
            for number in range(20)
        ),
        return_exceptions=True,
    )
    assert results.count(None) == 1
    refusals = [result for result in results if isinstance(result, VersionConflict)]
    assert [refusal.current_version for refusal in refusals] == [2] * 19
    row = await read_row(database, workspace_id)
    assert (row["name"], row["version"]) == (f"name {results.index(None)}", 2)
    assert len(await events(database)) == 1
