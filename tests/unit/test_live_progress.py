"""Whoever follows a workspace sees how far its operation is; nobody is looked at in vain."""

from collections.abc import AsyncIterator, Collection, Mapping
from uuid import uuid4

import pytest

from api.live.client import MAX_BEFORE_PROGRESS, LiveClient
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation
from codehub.ports import Progress
from testkit.fakes import FakeProgressBoard
from testkit.waiting import until
from tests.live_harness import Event, Harness, read, running

ANN, BOB = uuid4(), uuid4()
ONE, TWO = sorted(str(uuid4()) for _ in range(2))
HALFWAY, DONE = Progress("upload", 21, 42), Progress("upload", 42, 42)
NOTHING = (None, 0, None, None)


class WatchedBoard(FakeProgressBoard):
    """Remembers what was looked for."""

    def __init__(self) -> None:
        super().__init__(lifetime_seconds=600)
        self.looks: list[set[WorkspaceId]] = []

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        self.looks.append(set(workspace_ids))
        return await super().read(workspace_ids)

    async def until_next_look(self) -> None:
        # The one under way may have begun before whatever the test has just done.
        looks = len(self.looks)

        async def looked() -> bool:
            return len(self.looks) > looks + 1

        await until(looked, "the board is looked at")


@pytest.fixture
async def board() -> WatchedBoard:
    return WatchedBoard()


@pytest.fixture
async def harness(board: WatchedBoard) -> AsyncIterator[Harness]:
    async with running(board=board) as harness:
        harness.table.put(ANN, ONE, "first")
        yield harness


async def read_progress(client: LiveClient) -> tuple[str, str, tuple[object, ...]]:
    event = await read(client)
    assert event.name == "workspace_progress"
    assert event.id is None
    data = event.data
    return data["id"], data["operation"], (data["step"], data["done"], data["total"], data["unit"])


async def begin(harness: Harness, client: LiveClient, operation: Operation = Operation.ARCHIVING) -> None:
    """The operation begins, and the client knows."""
    harness.begin(ANN, ONE, operation)
    assert (await read(client)).name == "workspace_updated"


async def test_progress_is_told_whenever_it_has_changed(harness: Harness, board: WatchedBoard) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        await begin(harness, client)
        for progress in (HALFWAY, DONE):
            await board.post(WorkspaceId(ONE), progress)
            expected = ("upload", progress.done, 42, "bytes")
            assert await read_progress(client) == (ONE, "ARCHIVING", expected)
        await board.until_next_look()
        # What comes next is the end of the step: the same again was not told.
        await board.clear(WorkspaceId(ONE))
        assert await read_progress(client) == (ONE, "ARCHIVING", NOTHING)


async def test_nothing_is_looked_up_when_nothing_runs_or_nobody_listens(
    harness: Harness, board: WatchedBoard
) -> None:
    await board.post(WorkspaceId(ONE), HALFWAY)
    async with harness.hub.connect(ANN) as client:
        await read(client)
        harness.change(ANN, ONE, "second")
        await read(client)
        assert board.looks == []
        await begin(harness, client)
        await read_progress(client)
        harness.begin(ANN, ONE, Operation.NONE)
        await read(client)
        await until_quiet(harness)
    assert board.looks
    assert {frozenset(look) for look in board.looks} == {frozenset({ONE})}
    harness.table.operations[ONE] = Operation.ARCHIVING
    async with harness.hub.connect(ANN) as client:
        await read(client)
        await read_progress(client)
    await until_quiet(harness)


async def until_quiet(harness: Harness) -> None:
    async def quiet() -> bool:
        return not harness.hub._progress._wanted.is_set()

    await until(quiet, "nobody looks any more")


async def test_one_look_is_made_for_all_and_nobody_sees_that_of_others(
    harness: Harness, board: WatchedBoard
) -> None:
    harness.table.put(BOB, TWO, "of bob")
    harness.table.operations = {ONE: Operation.ARCHIVING, TWO: Operation.STARTING}
    async with harness.hub.connect(ANN) as ann, harness.hub.connect(BOB) as bob:
        await read(ann)
        await read(bob)
        await board.post(WorkspaceId(ONE), HALFWAY)
        await board.post(WorkspaceId(TWO), DONE)
        assert (await read_progress(ann))[:2] == (ONE, "ARCHIVING")
        assert (await read_progress(bob))[:2] == (TWO, "STARTING")
        await board.until_next_look()
    assert {ONE, TWO} in board.looks


async def test_who_comes_later_is_told_at_once_but_after_the_snapshot(
    harness: Harness, board: WatchedBoard
) -> None:
    async with harness.hub.connect(ANN) as early:
        await read(early)
        await begin(harness, early)
        await board.post(WorkspaceId(ONE), HALFWAY)
        await read_progress(early)
        harness.table.free.clear()
        async with harness.hub.connect(ANN) as late:
            await board.post(WorkspaceId(ONE), DONE)
            await read_progress(early)
            harness.table.free.set()
            snapshot = await read(late)
            assert snapshot.name == "snapshot"
            assert (await read_progress(late))[2][1] == 42
        # The same for one who needs no snapshot; progress has not changed what it must know.
        async with harness.hub.connect(ANN, last_event_id=snapshot.id) as returned:
            assert await read(returned) == Event("heartbeat", {})
            assert (await read_progress(returned))[2][1] == 42


async def test_another_operation_begins_without_the_progress_of_the_last(
    harness: Harness, board: WatchedBoard
) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        await begin(harness, client)
        await board.post(WorkspaceId(ONE), HALFWAY)
        await read_progress(client)
        await board.clear(WorkspaceId(ONE))
        await read_progress(client)
        await begin(harness, client, Operation.STARTING)
        async with harness.hub.connect(ANN) as late:
            await read(late)
            await board.post(WorkspaceId(ONE), DONE)
            for each in (client, late):
                assert await read_progress(each) == (ONE, "STARTING", ("upload", 42, 42, "bytes"))


async def test_an_outage_of_the_board_ends_nothing(harness: Harness, board: WatchedBoard) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        await begin(harness, client)
        await board.post(WorkspaceId(ONE), HALFWAY)
        await read_progress(client)
        board.is_up = False
        assert (await read_progress(client))[2] == NOTHING
        harness.change(ANN, ONE, "told all the same")
        assert (await read(client)).name == "workspace_updated"
        board.is_up = True
        assert (await read_progress(client))[2][0] == "upload"


async def test_nobody_is_cut_off_for_progress_that_is_not_read(harness: Harness, board: WatchedBoard) -> None:
    async with harness.hub.connect(ANN) as slow, harness.hub.connect(ANN) as quick:
        await read(slow)
        await read(quick)
        await begin(harness, quick)
        for done in range(3 * MAX_BEFORE_PROGRESS):
            await board.post(WorkspaceId(ONE), Progress("upload", done))
            assert (await read_progress(quick))[2][1] == done
        harness.change(ANN, ONE, "last")
        names = [(await read(slow)).name for _ in range(MAX_BEFORE_PROGRESS + 1)]
    told = ["workspace_progress"] * (MAX_BEFORE_PROGRESS - 1)
    assert names == ["workspace_updated", *told, "workspace_updated"]
    assert harness.hub.dropped == 0
