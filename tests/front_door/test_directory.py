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
from tests.fake_world import IMAGE, FakeInstance, FakeWorld
from tests.fakes import FakeInstances
from tests.front_door.answers import Clock, HeldDatabase, questions
from tests.front_door.harness import STATES
from tests.rows import NOW, add_user, add_workspace
from tests.waiting import until


class Bench:
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

    async def look(self, workspace_id: WorkspaceId) -> CachedWorkspace:
        place = await self.directory.look(workspace_id)
        assert place is not None
        return place

    @property
    def searches(self) -> int:
        return sum(call == "instances.find_upstream" for call, _ in self.world.calls)


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Bench]:
    async with HeldDatabase(create_engine(database_url)) as database:
        yield Bench(database)


@pytest.fixture
async def workspace_id(bench: Bench) -> WorkspaceId:
    return await bench.add()


def instance_since(seconds: int, answers: Condition = NOT_OBSERVED) -> Mapping[str, object]:
    """Conditions of a workspace whose instance became ready then."""
    moment = NOW + timedelta(seconds=seconds)
    ready = Condition(Status.TRUE, Reason.READY, "It answers.", moment)
    return conditions_to_json(Conditions(container_ready=ready, container_answers=answers))


async def test_all_who_ask_at_once_share_one_question(bench: Bench, workspace_id: WorkspaceId) -> None:
    with questions(bench.database) as asked:
        places = await asyncio.gather(*(bench.look(workspace_id) for _ in range(20)))
        assert len(asked) == 1
        assert all(place is places[0] for place in places)
        assert await bench.look(workspace_id) is places[0]
        assert len(asked) == 1


async def test_one_who_leaves_takes_the_answer_from_nobody(bench: Bench, workspace_id: WorkspaceId) -> None:
    bench.database.holding = True
    leaves, stays = (asyncio.create_task(bench.look(workspace_id)) for _ in range(2))
    await bench.database.wait_for(1)
    leaves.cancel()
    bench.database.on_their_way[0].set()
    assert (await stays).view.workspace_id == workspace_id


async def test_what_was_seen_is_believed_for_seconds(bench: Bench, workspace_id: WorkspaceId) -> None:
    place = await bench.look(workspace_id)
    bench.clock.now += FRESH_SECONDS
    assert bench.directory.get(workspace_id) is place
    bench.clock.now += 0.001
    assert bench.directory.get(workspace_id) is None
    await bench.change(workspace_id, name="new")
    assert (await bench.look(workspace_id)).view.name == "new"


async def test_a_change_makes_a_look_under_way_not_count(bench: Bench, workspace_id: WorkspaceId) -> None:
    bench.database.holding = True
    looking = asyncio.create_task(bench.look(workspace_id))
    await bench.database.wait_for(1)
    await bench.change(workspace_id, name="new")
    bench.directory.note_change(workspace_id)
    bench.database.on_their_way[0].set()
    assert (await looking).view.name == "home"
    assert bench.directory.get(workspace_id) is None
    bench.database.holding = False
    assert (await bench.look(workspace_id)).view.name == "new"
    # At the same moment nobody can tell which came first; afterwards it is known.
    bench.clock.now += 0.001
    assert (await bench.look(workspace_id)).view.name == "new"
    assert bench.directory.get(workspace_id) is not None


@pytest.mark.parametrize("changed", [True, False])
async def test_an_older_answer_that_comes_later_changes_nothing(
    bench: Bench, workspace_id: WorkspaceId, changed: bool
) -> None:
    bench.database.holding = True
    older = asyncio.create_task(bench.look(workspace_id))
    await bench.database.wait_for(1)
    if changed:
        await bench.change(workspace_id, name="new")
    bench.directory.note_change(workspace_id)
    bench.clock.now += 1
    newer = asyncio.create_task(bench.look(workspace_id))
    await bench.database.wait_for(2)
    bench.database.on_their_way[1].set()
    place = await newer
    bench.database.on_their_way[0].set()
    await older
    known = bench.directory.get(workspace_id)
    assert known is not None
    assert (known.view, known.confirmed_at) == (place.view, bench.clock.now)


async def test_its_upstream_is_kept_as_long_as_its_instance(bench: Bench, workspace_id: WorkspaceId) -> None:
    await bench.change(workspace_id, conditions=instance_since(0))
    place = await bench.look(workspace_id)
    upstream = await bench.directory.find_upstream(place)
    bench.clock.now += FRESH_SECONDS + 1
    await bench.change(workspace_id, name="new")
    place = await bench.look(workspace_id)
    assert (place.view.name, place.upstream, bench.searches) == ("new", upstream, 1)
    await bench.change(workspace_id, conditions=instance_since(1))
    await bench.directory.confirm()
    place = await bench.look(workspace_id)
    assert place.upstream is None
    assert await bench.directory.find_upstream(place) == upstream
    assert (place.upstream, bench.searches) == (upstream, 2)


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
    bench: Bench, workspace_id: WorkspaceId
) -> None:
    await bench.change(workspace_id, conditions=instance_since(0))
    upstream = await bench.directory.find_upstream(await bench.look(workspace_id))
    silent = Condition(Status.FALSE, Reason.NOT_ANSWERING, "It does not answer.", NOW)
    await bench.change(workspace_id, conditions=instance_since(0, silent))
    await bench.directory.confirm()
    place = await bench.look(workspace_id)
    assert not place.view.conditions.container_answers.is_true
    assert (is_open(place.standing), place.upstream, bench.searches) == (True, upstream, 1)


async def test_an_upstream_of_an_instance_that_is_gone_is_not_kept(
    bench: Bench, workspace_id: WorkspaceId
) -> None:
    instances = SlowInstances(bench.world)
    directory = WorkspaceCache(bench.database, instances, bench.clock)
    place = await directory.look(workspace_id)
    assert place is not None
    searching = asyncio.create_task(directory.find_upstream(place))
    await instances.asked.wait()
    await bench.change(workspace_id, conditions=instance_since(1))
    await directory.confirm()
    instances.answers.set()
    await searching
    known = directory.get(workspace_id)
    assert known is not None
    assert known.upstream is None


async def test_only_the_upstream_that_failed_is_forgotten(bench: Bench, workspace_id: WorkspaceId) -> None:
    place = await bench.look(workspace_id)
    upstream = await bench.directory.find_upstream(place)
    bench.directory.forget_upstream(workspace_id, Upstream("127.0.0.1", 1, keep_prefix=False))
    assert place.upstream == upstream is not None
    bench.directory.forget_upstream(workspace_id, upstream)
    assert place.upstream is None


async def test_those_that_are_asked_for_are_confirmed_with_one_question(bench: Bench) -> None:
    ids = [await bench.add() for _ in range(3)]
    for workspace_id in ids:
        await bench.look(workspace_id)
    bench.clock.now += FRESH_SECONDS
    with questions(bench.database) as asked:
        await bench.directory.confirm()
        bench.clock.now += FRESH_SECONDS
        assert all(bench.directory.get(workspace_id) for workspace_id in ids)
        assert len(asked) == 1


async def test_those_that_nobody_asks_for_are_dropped(bench: Bench) -> None:
    asked_for, left = await bench.add(), await bench.add()
    for workspace_id in (asked_for, left):
        await bench.look(workspace_id)
    bench.clock.now += KEPT_SECONDS
    bench.directory.get(asked_for)
    bench.clock.now += 1
    await bench.directory.confirm()
    assert bench.directory.get(asked_for) is not None
    assert bench.directory.get(left) is None
    bench.clock.now += KEPT_SECONDS + 1
    with questions(bench.database) as asked:
        await bench.directory.confirm()
        assert asked == []


async def test_a_deleted_workspace_is_gone(bench: Bench, workspace_id: WorkspaceId) -> None:
    await bench.look(workspace_id)
    await bench.change(workspace_id, phase="DELETED", desired_state="DELETED", deleted_at=NOW)
    await bench.directory.confirm()
    assert bench.directory.get(workspace_id) is None
    assert await bench.directory.look(workspace_id) is None


async def test_no_more_are_remembered_than_there_is_room_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "CAPACITY", 3)
    ids = [await bench.add() for _ in range(5)]
    for workspace_id in ids:
        await bench.look(workspace_id)
        assert bench.directory.get(workspace_id) is not None
    assert sum(bench.directory.get(workspace_id) is not None for workspace_id in ids) <= 3


@pytest.mark.parametrize("told", [True, False])
async def test_whoever_waits_for_a_change_is_told(
    bench: Bench, workspace_id: WorkspaceId, told: bool
) -> None:
    await bench.look(workspace_id)
    waiting = asyncio.create_task(bench.directory.wait_for_change(workspace_id, 3600))
    await bench.directory.confirm()
    assert not waiting.done()
    await bench.change(workspace_id, **STATES["STOPPING"])
    if told:
        bench.directory.note_change(workspace_id)
    else:
        await bench.directory.confirm()

    async def returned() -> bool:
        return waiting.done()

    await until(returned, "the wait is over")
