"""What is remembered of workspaces: asked for once, never older than promised, never against the order."""

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
from proxy import workspace_cache as directory_module
from proxy.decisions import is_open
from proxy.workspace_cache import FRESH_SECONDS, KEPT_SECONDS, CachedWorkspace, WorkspaceCache
from testkit.fake_world import IMAGE, FakeInstance, FakeWorld
from testkit.fakes import FakeInstances
from testkit.rows import NOW, add_user, add_workspace
from testkit.waiting import until
from tests.front_door.harness import STATES
from tests.front_door.held_database import Clock, HeldDatabase, questions


class Harness:
    """A directory, and everything that it asks."""

    def __init__(self, database: HeldDatabase) -> None:
        self.database = database
        self.clock = Clock()
        self.world = FakeWorld()
        self.directory = WorkspaceCache(database, FakeInstances(self.world), self.clock)

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
        place = await self.directory.find(workspace_id)
        assert place is not None
        return place

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
    """Conditions of a workspace whose instance became ready then."""
    moment = NOW + timedelta(seconds=seconds)
    ready = Condition(Status.TRUE, Reason.READY, "It answers.", moment)
    return conditions_to_json(Conditions(container_ready=ready, container_answers=answers))


async def test_all_who_ask_at_once_share_one_question(harness: Harness, workspace_id: WorkspaceId) -> None:
    with questions(harness.database) as asked:
        places = await asyncio.gather(*(harness.find(workspace_id) for _ in range(20)))
        assert len(asked) == 1
        assert all(place is places[0] for place in places)
        assert await harness.find(workspace_id) is places[0]
        assert len(asked) == 1


async def test_one_who_leaves_takes_the_answer_from_nobody(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    harness.database.holding = True
    leaves, stays = (asyncio.create_task(harness.find(workspace_id)) for _ in range(2))
    await harness.database.wait_for(1)
    leaves.cancel()
    harness.database.on_their_way[0].set()
    assert (await stays).view.workspace_id == workspace_id


async def test_what_was_seen_is_believed_for_seconds(harness: Harness, workspace_id: WorkspaceId) -> None:
    place = await harness.find(workspace_id)
    harness.clock.now += FRESH_SECONDS
    assert harness.directory.get(workspace_id) is place
    harness.clock.now += 0.001
    assert harness.directory.get(workspace_id) is None
    await harness.change(workspace_id, name="new")
    assert (await harness.find(workspace_id)).view.name == "new"


async def test_a_change_makes_a_look_under_way_not_count(harness: Harness, workspace_id: WorkspaceId) -> None:
    harness.database.holding = True
    looking = asyncio.create_task(harness.find(workspace_id))
    await harness.database.wait_for(1)
    await harness.change(workspace_id, name="new")
    harness.directory.mark_changed(workspace_id)
    harness.database.on_their_way[0].set()
    assert (await looking).view.name == "home"
    assert harness.directory.get(workspace_id) is None
    harness.database.holding = False
    assert (await harness.find(workspace_id)).view.name == "new"
    # At the same moment nobody can tell which came first; afterwards it is known.
    harness.clock.now += 0.001
    assert (await harness.find(workspace_id)).view.name == "new"
    assert harness.directory.get(workspace_id) is not None


@pytest.mark.parametrize("changed", [True, False])
async def test_an_older_answer_that_comes_later_changes_nothing(
    harness: Harness, workspace_id: WorkspaceId, changed: bool
) -> None:
    harness.database.holding = True
    older = asyncio.create_task(harness.find(workspace_id))
    await harness.database.wait_for(1)
    if changed:
        await harness.change(workspace_id, name="new")
    harness.directory.mark_changed(workspace_id)
    harness.clock.now += 1
    newer = asyncio.create_task(harness.find(workspace_id))
    await harness.database.wait_for(2)
    harness.database.on_their_way[1].set()
    place = await newer
    harness.database.on_their_way[0].set()
    await older
    known = harness.directory.get(workspace_id)
    assert known is not None
    assert (known.view, known.validated_at) == (place.view, harness.clock.now)


async def test_its_upstream_is_kept_as_long_as_its_instance(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    await harness.change(workspace_id, conditions=instance_since(0))
    place = await harness.find(workspace_id)
    upstream = await harness.directory.find_upstream(place)
    harness.clock.now += FRESH_SECONDS + 1
    await harness.change(workspace_id, name="new")
    place = await harness.find(workspace_id)
    assert (place.view.name, place.upstream, harness.searches) == ("new", upstream, 1)
    await harness.change(workspace_id, conditions=instance_since(1))
    await harness.directory.refresh()
    place = await harness.find(workspace_id)
    assert place.upstream is None
    assert await harness.directory.find_upstream(place) == upstream
    assert (place.upstream, harness.searches) == (upstream, 2)


class SlowInstances(FakeInstances):
    """Finds what was there when it was asked, later."""

    def __init__(self, world: FakeWorld) -> None:
        super().__init__(world)
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        found = await super().find_upstream(workspace_id)
        self.asked.set()
        await self.answers.wait()
        return found


async def test_its_upstream_is_kept_while_its_instance_does_not_answer_for_a_moment(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    await harness.change(workspace_id, conditions=instance_since(0))
    upstream = await harness.directory.find_upstream(await harness.find(workspace_id))
    silent = Condition(Status.FALSE, Reason.NOT_ANSWERING, "It does not answer.", NOW)
    await harness.change(workspace_id, conditions=instance_since(0, silent))
    await harness.directory.refresh()
    place = await harness.find(workspace_id)
    assert not place.view.conditions.container_answers.is_true
    assert (is_open(place.lifecycle), place.upstream, harness.searches) == (True, upstream, 1)


async def test_an_upstream_of_an_instance_that_is_gone_is_not_kept(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    instances = SlowInstances(harness.world)
    directory = WorkspaceCache(harness.database, instances, harness.clock)
    place = await directory.find(workspace_id)
    assert place is not None
    searching = asyncio.create_task(directory.find_upstream(place))
    await instances.asked.wait()
    await harness.change(workspace_id, conditions=instance_since(1))
    await directory.refresh()
    instances.answers.set()
    await searching
    known = directory.get(workspace_id)
    assert known is not None
    assert known.upstream is None


async def test_only_the_upstream_that_failed_is_forgotten(
    harness: Harness, workspace_id: WorkspaceId
) -> None:
    place = await harness.find(workspace_id)
    upstream = await harness.directory.find_upstream(place)
    harness.directory.forget_upstream(workspace_id, Upstream("127.0.0.1", 1, keep_prefix=False))
    assert place.upstream == upstream is not None
    harness.directory.forget_upstream(workspace_id, upstream)
    assert place.upstream is None


async def test_those_that_are_asked_for_are_confirmed_with_one_question(harness: Harness) -> None:
    ids = [await harness.add() for _ in range(3)]
    for workspace_id in ids:
        await harness.find(workspace_id)
    harness.clock.now += FRESH_SECONDS
    with questions(harness.database) as asked:
        await harness.directory.refresh()
        harness.clock.now += FRESH_SECONDS
        assert all(harness.directory.get(workspace_id) for workspace_id in ids)
        assert len(asked) == 1


async def test_those_that_nobody_asks_for_are_dropped(harness: Harness) -> None:
    asked_for, left = await harness.add(), await harness.add()
    for workspace_id in (asked_for, left):
        await harness.find(workspace_id)
    harness.clock.now += KEPT_SECONDS
    harness.directory.get(asked_for)
    harness.clock.now += 1
    await harness.directory.refresh()
    assert harness.directory.get(asked_for) is not None
    assert harness.directory.get(left) is None
    harness.clock.now += KEPT_SECONDS + 1
    with questions(harness.database) as asked:
        await harness.directory.refresh()
        assert asked == []


async def test_a_deleted_workspace_is_gone(harness: Harness, workspace_id: WorkspaceId) -> None:
    await harness.find(workspace_id)
    await harness.change(workspace_id, phase="DELETED", desired_state="DELETED", deleted_at=NOW)
    await harness.directory.refresh()
    assert harness.directory.get(workspace_id) is None
    assert await harness.directory.find(workspace_id) is None


async def test_no_more_are_remembered_than_there_is_room_for(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "CAPACITY", 3)
    ids = [await harness.add() for _ in range(5)]
    for workspace_id in ids:
        await harness.find(workspace_id)
        assert harness.directory.get(workspace_id) is not None
    assert sum(harness.directory.get(workspace_id) is not None for workspace_id in ids) <= 3


@pytest.mark.parametrize("told", [True, False])
async def test_whoever_waits_for_a_change_is_told(
    harness: Harness, workspace_id: WorkspaceId, told: bool
) -> None:
    await harness.find(workspace_id)
    waiting = asyncio.create_task(harness.directory.wait_for_change(workspace_id, 3600))
    await harness.directory.refresh()
    assert not waiting.done()
    await harness.change(workspace_id, **STATES["STOPPING"])
    if told:
        harness.directory.mark_changed(workspace_id)
    else:
        await harness.directory.refresh()

    async def returned() -> bool:
        return waiting.done()

    await until(returned, "the wait is over")
