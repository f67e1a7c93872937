"""Waiting ends as soon as a workspace is settled."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from sqlalchemy import update
from sqlalchemy.pool import QueuePool

from codehub.db.models import Workspace
from codehub.db.session import Database
from codehub.db.views import WorkspaceView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Phase
from codehub.services.convergence import (
    FIRST_PAUSE_SECONDS,
    MAX_PAUSE_SECONDS,
    next_pause,
    wait_until_settled,
)
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

RUNNING = {"phase": "RUNNING", "desired_state": "RUNNING"}
STANDBY = {"phase": "STANDBY", "desired_state": "RUNNING"}
STARTING = {**STANDBY, "operation": "STARTING", "op_started_at": NOW}
BROKEN = {"phase": "ERROR", "error_reason": "Timeout"}
DELETING = {"phase": "DELETING", "desired_state": "DELETED", "deleted_at": NOW}
RECOVERING = {"recover_choice": "retry", "recover_requested_at": NOW}
LONG = timedelta(minutes=1)


async def add(database: Database, **columns: object) -> WorkspaceId:
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session), **columns)


async def change(database: Database, workspace_id: WorkspaceId, **columns: object) -> None:
    async with database.transaction() as session:
        await session.execute(update(Workspace).where(Workspace.id == UUID(workspace_id)).values(**columns))


async def wait(
    database: Database,
    workspace_id: WorkspaceId,
    timeout: timedelta = timedelta(),  # noqa: ASYNC109
) -> WorkspaceView | None:
    return await wait_until_settled(database, workspace_id, timeout=timeout)


async def unexpected(_seconds: float) -> None:
    raise AssertionError("there is nothing to wait for")


@pytest.mark.parametrize(
    "columns",
    [
        RUNNING,
        BROKEN,
        {**BROKEN, **RECOVERING, "recover_handled_at": NOW},
        {**DELETING, "error_reason": "DataLost"},
    ],
)
async def test_waiting_for_a_settled_workspace_returns_at_once(
    database: Database, columns: dict[str, object]
) -> None:
    workspace_id = await add(database, **columns)
    seen = await wait_until_settled(database, workspace_id, timeout=LONG, pause_for=unexpected)
    assert seen is not None
    assert seen.phase == columns["phase"]


@pytest.mark.parametrize("phase", ["DELETED", None])
async def test_waiting_for_a_missing_workspace_returns_at_once(database: Database, phase: str | None) -> None:
    workspace_id = await add(database, **{**DELETING, "phase": phase}) if phase else new_workspace_id()
    assert await wait_until_settled(database, workspace_id, timeout=LONG, pause_for=unexpected) is None


class Waited(Exception):
    """Raised instead of waiting."""


@pytest.mark.parametrize(
    "columns",
    [
        STANDBY,
        STARTING,
        {**RUNNING, "operation": "STARTING", "op_started_at": NOW},
        {**STARTING, "error_reason": "Unreachable"},
        {**BROKEN, **RECOVERING},
        DELETING,
        {**DELETING, "error_reason": "Unreachable"},
        {**DELETING, "error_reason": "DataLost", "purge": True},
        {"phase": "PENDING", "desired_state": "ARCHIVED"},
    ],
)
async def test_waiting_continues_while_something_is_left_to_do(
    database: Database, columns: dict[str, object]
) -> None:
    async def pause(_seconds: float) -> None:
        raise Waited

    workspace_id = await add(database, **columns)
    with pytest.raises(Waited):
        await wait_until_settled(database, workspace_id, timeout=LONG, pause_for=pause)


async def test_no_connection_is_held_while_waiting_for_a_change(database: Database) -> None:
    workspace_id = await add(database, **STARTING)
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    held: list[int] = []
    news: list[dict[str, object]] = [{"operation": "NONE", "op_started_at": None}, {"phase": "RUNNING"}]

    async def pause(_seconds: float) -> None:
        held.append(pool.checkedout())
        await change(database, workspace_id, **news[len(held) - 1])

    seen = await wait_until_settled(database, workspace_id, timeout=LONG, pause_for=pause)
    assert seen is not None
    assert (seen.phase, held) == (Phase.RUNNING, [0, 0])


async def test_change_is_noticed_without_an_event(database: Database) -> None:
    workspace_id = await add(database, **STARTING)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait(database, workspace_id, LONG))
        await change(database, workspace_id, **DELETING, operation="NONE", op_started_at=None)
        await change(database, workspace_id, phase="DELETED")
    assert waiting.result() is None


@pytest.mark.parametrize("milliseconds", [0, 1, 150])
async def test_the_current_state_is_returned_when_the_time_is_over(
    database: Database, milliseconds: int
) -> None:
    workspace_id = await add(database, **STARTING)
    seen = await wait(database, workspace_id, timedelta(milliseconds=milliseconds))
    assert seen is not None
    assert seen.phase is Phase.STANDBY


async def test_waiting_ends_when_it_is_canceled(database: Database) -> None:
    begun = asyncio.Event()

    async def pause(_seconds: float) -> None:
        begun.set()
        await asyncio.Event().wait()

    workspace_id = await add(database, **STARTING)
    waiting = asyncio.create_task(wait_until_settled(database, workspace_id, timeout=LONG, pause_for=pause))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_pauses_grow_from_a_tenth_of_a_second_to_one() -> None:
    pauses = [FIRST_PAUSE_SECONDS]
    for _ in range(10):
        pauses.append(next_pause(pauses[-1]))
    assert all(earlier <= later for earlier, later in pairwise(pauses))
    assert (pauses[0], pauses[-1]) == (0.1, MAX_PAUSE_SECONDS)
