"""Cached workspaces: loaded once, never older than promised, never replaced by older results."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update

from codehub.db.models import Workspace
from codehub.db.session import create_engine
from codehub.domain.conditions import (
    NOT_OBSERVED,
    Condition,
    Conditions,
    Reason,
    Status,
    WorkspaceId,
    conditions_to_json,
)
from codehub.ports import Upstream
from proxy import workspace_cache
from proxy.decisions import is_open
from proxy.workspace_cache import FRESH_SECONDS, KEPT_SECONDS, CachedWorkspace, WorkspaceCache
from testkit.fake_world import IMAGE, FakeInstance, FakeWorld
from testkit.fakes import FakeInstances
from testkit.rows import NOW, add_user, add_workspace
from testkit.waiting import until
from tests.front_door.harness import STATES
from tests.front_door.held_database import Clock, HeldDatabase, recorded_statements


class Harness:
    """A workspace cache with its database, clock and instances."""

    def __init__(self, database: HeldDatabase) -> None:
        self.database = database
        self.clock = Clock()
        self.world = FakeWorld()
        self.cache = WorkspaceCache(database, FakeInstances(self.world), self.clock)

    async def add(self) -> WorkspaceId:
        async with self.database.transaction() as session:
            workspace_id = await add_workspace(session, await add_user(session), **STATES["RUNNING"])
        self.world.instances[workspace_id] = FakeInstance(IMAGE)
        return workspace_id

    async def change(self, workspace_id: WorkspaceId, **columns: object) -> None:
        async with self.database.engine.begin() as connection:
            changing = update(Workspace).where(Workspace.id == UUID(workspace_id))
            await connection.execute(changing.values(columns))

    async def find(self, workspace_id: WorkspaceId) -> CachedWorkspace:
        workspace = await self.cache.find(workspace_id)
        assert workspace is not None
        return workspace

    @property
    def searches(self) -> int:
        return sum(call == "instances.find_upstream" for call, _ in self.world.calls)


@pytest.fixture
async def harness(database_url: str) -> AsyncIterator[Harness]:
    async with HeldDatabase(create_engine(database_url)) as database:
        yield Harness(database)


@pytest.fixture
async def workspace_id(harness: Harness) -> WorkspaceId:
    return await harness.add()


def instance_since(seconds: int, answers: Condition = NOT_OBSERVED) -> Mapping[str, object]:
    """Return the conditions of a workspace whose instance became ready then."""
    moment = NOW + timedelta(seconds=seconds)
    ready = Condition(Status.TRUE, Reason.READY, "It answers.", moment)
    return conditions_to_json(Conditions(container_ready=ready, container_answers=answers))


async def test_concurrent_requests_share_one_query(harness: Harness, workspace_id: WorkspaceId) -> None:
    with recorded_statements(harness.database) as statements:
        workspaces = await asyncio.gather(*(harness.find(workspace_id) for _ in range(20)))
        assert len(statements) == 1
        assert all(workspace is workspaces[0] for workspace in workspaces)
        assert await harness.find(workspace_id) is workspaces[0]
        assert len(statements) == 1


async def test_a_cancelled_request_does_not_cancel_the_query_for_others(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    harness.database.holding = True
    leaves, stays = (asyncio.create_task(harness.find(workspace_id)) for _ in range(2))
    await harness.database.wait_until_held(1)
    leaves.cancel()
    harness.database.held[0].set()
    assert (await stays).view.workspace_id == workspace_id


async def test_a_workspace_is_cached_for_seconds(harness: Harness, workspace_id: WorkspaceId) -> None:
    workspace = await harness.find(workspace_id)
    harness.clock.now += FRESH_SECONDS
    assert harness.cache.get(workspace_id) is workspace
    harness.clock.now += 0.001
    assert harness.cache.get(workspace_id) is None
    await harness.change(workspace_id, name="new")
    assert (await harness.find(workspace_id)).view.name == "new"


async def test_a_change_invalidates_a_query_in_progress(harness: Harness, workspace_id: WorkspaceId) -> None:
    harness.database.holding = True
    loading = asyncio.create_task(harness.find(workspace_id))
    await harness.database.wait_until_held(1)
    await harness.change(workspace_id, name="new")
    harness.cache.mark_changed(workspace_id)
    harness.database.held[0].set()
    assert (await loading).view.name == "home"
    assert harness.cache.get(workspace_id) is None
    harness.database.holding = False
    assert (await harness.find(workspace_id)).view.name == "new"
    # At the same moment, it is unknown which came first; later it is known.
    harness.clock.now += 0.001
    assert (await harness.find(workspace_id)).view.name == "new"
    assert harness.cache.get(workspace_id) is not None


@pytest.mark.parametrize("changed", [True, False])
async def test_an_older_result_that_arrives_later_changes_nothing(
    harness: Harness, workspace_id: WorkspaceId, changed: bool
) -> None:
    harness.database.holding = True
    older = asyncio.create_task(harness.find(workspace_id))
    await harness.database.wait_until_held(1)
    if changed:
        await harness.change(workspace_id, name="new")
    harness.cache.mark_changed(workspace_id)
    harness.clock.now += 1
    newer = asyncio.create_task(harness.find(workspace_id))
    await harness.database.wait_until_held(2)
    harness.database.held[1].set()
    workspace = await newer
    harness.database.held[0].set()
    await older
    cached = harness.cache.get(workspace_id)
    assert cached is not None
    assert (cached.view, cached.validated_at) == (workspace.view, harness.clock.now)


async def test_the_upstream_is_kept_as_long_as_the_instance(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    await harness.change(workspace_id, conditions=instance_since(0))
    workspace = await harness.find(workspace_id)
    upstream = await harness.cache.find_upstream(workspace)
    harness.clock.now += FRESH_SECONDS + 1
    await harness.change(workspace_id, name="new")
    workspace = await harness.find(workspace_id)
    assert (workspace.view.name, workspace.upstream, harness.searches) == ("new", upstream, 1)
    await harness.change(workspace_id, conditions=instance_since(1))
    await harness.cache.refresh()
    workspace = await harness.find(workspace_id)
    assert workspace.upstream is None
    assert await harness.cache.find_upstream(workspace) == upstream
    assert (workspace.upstream, harness.searches) == (upstream, 2)


class SlowInstances(FakeInstances):
    """Instances whose result can be held back."""

    def __init__(self, world: FakeWorld) -> None:
        super().__init__(world)
        self.called, self.released = asyncio.Event(), asyncio.Event()

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        found = await super().find_upstream(workspace_id)
        self.called.set()
        await self.released.wait()
        return found


async def test_the_upstream_is_kept_while_the_instance_briefly_does_not_answer(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    await harness.change(workspace_id, conditions=instance_since(0))
    upstream = await harness.cache.find_upstream(await harness.find(workspace_id))
    silent = Condition(Status.FALSE, Reason.NOT_ANSWERING, "It does not answer.", NOW)
    await harness.change(workspace_id, conditions=instance_since(0, silent))
    await harness.cache.refresh()
    workspace = await harness.find(workspace_id)
    assert not workspace.view.conditions.container_answers.is_true
    assert (is_open(workspace.lifecycle), workspace.upstream, harness.searches) == (True, upstream, 1)


async def test_the_upstream_of_a_previous_instance_is_not_kept(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    instances = SlowInstances(harness.world)
    cache = WorkspaceCache(harness.database, instances, harness.clock)
    workspace = await cache.find(workspace_id)
    assert workspace is not None
    searching = asyncio.create_task(cache.find_upstream(workspace))
    await instances.called.wait()
    await harness.change(workspace_id, conditions=instance_since(1))
    await cache.refresh()
    instances.released.set()
    await searching
    cached = cache.get(workspace_id)
    assert cached is not None
    assert cached.upstream is None


async def test_only_the_upstream_that_failed_is_forgotten(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    workspace = await harness.find(workspace_id)
    upstream = await harness.cache.find_upstream(workspace)
    harness.cache.forget_upstream(workspace_id, Upstream("127.0.0.1", 1, keep_prefix=False))
    assert workspace.upstream == upstream is not None
    harness.cache.forget_upstream(workspace_id, upstream)
    assert workspace.upstream is None


async def test_requested_workspaces_are_refreshed_with_one_query(harness: Harness) -> None:
    ids = [await harness.add() for _ in range(3)]
    for workspace_id in ids:
        await harness.find(workspace_id)
    harness.clock.now += FRESH_SECONDS
    with recorded_statements(harness.database) as statements:
        await harness.cache.refresh()
        harness.clock.now += FRESH_SECONDS
        assert all(harness.cache.get(workspace_id) for workspace_id in ids)
        assert len(statements) == 1


async def test_workspaces_without_requests_are_dropped(harness: Harness) -> None:
    requested, unused = await harness.add(), await harness.add()
    for workspace_id in (requested, unused):
        await harness.find(workspace_id)
    harness.clock.now += KEPT_SECONDS
    harness.cache.get(requested)
    harness.clock.now += 1
    await harness.cache.refresh()
    assert harness.cache.get(requested) is not None
    assert harness.cache.get(unused) is None
    harness.clock.now += KEPT_SECONDS + 1
    with recorded_statements(harness.database) as statements:
        await harness.cache.refresh()
        assert statements == []


async def test_a_deleted_workspace_is_dropped(harness: Harness, workspace_id: WorkspaceId) -> None:
    await harness.find(workspace_id)
    await harness.change(workspace_id, phase="DELETED", desired_state="DELETED", deleted_at=NOW)
    await harness.cache.refresh()
    assert harness.cache.get(workspace_id) is None
    assert await harness.cache.find(workspace_id) is None


async def test_the_cache_has_a_limit(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_cache, "CAPACITY", 3)
    ids = [await harness.add() for _ in range(5)]
    for workspace_id in ids:
        await harness.find(workspace_id)
        assert harness.cache.get(workspace_id) is not None
    assert sum(harness.cache.get(workspace_id) is not None for workspace_id in ids) <= 3


@pytest.mark.parametrize("event", [True, False])
async def test_a_change_ends_the_wait_for_it(
    harness: Harness, workspace_id: WorkspaceId, event: bool
) -> None:
    await harness.find(workspace_id)
    waiting = asyncio.create_task(harness.cache.wait_for_change(workspace_id, 3600))
    await harness.cache.refresh()
    assert not waiting.done()
    await harness.change(workspace_id, **STATES["STOPPING"])
    if event:
        harness.cache.mark_changed(workspace_id)
    else:
        await harness.cache.refresh()

    async def returned() -> bool:
        return waiting.done()

    await until(returned, "the wait is over")
