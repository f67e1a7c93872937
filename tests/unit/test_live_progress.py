"""Streams carry the progress of running operations, and nothing is read without need."""

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
    """Records what is read."""

    def __init__(self) -> None:
        super().__init__(lifetime_seconds=600)
        self.reads: list[set[WorkspaceId]] = []

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        self.reads.append(set(workspace_ids))
        return await super().read(workspace_ids)

    async def until_next_read(self) -> None:
        # The read in progress may have begun before the test's last action.
        looks = len(self.reads)

        async def looked() -> bool:
            return len(self.reads) > looks + 1

        await until(looked, "the board is read")


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
    """Start the operation, and wait until the client knows."""
    harness.begin(ANN, ONE, operation)
    assert (await read(client)).name == "workspace_updated"


async def test_progress_is_sent_whenever_it_has_changed(harness: Harness, board: WatchedBoard) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        await begin(harness, client)
        for progress in (HALFWAY, DONE):
            await board.post(WorkspaceId(ONE), progress)
            expected = ("upload", progress.done, 42, "bytes")
            assert await read_progress(client) == (ONE, "ARCHIVING", expected)
        await board.until_next_read()
        # The end of the step comes next: unchanged progress was not sent again.
        await board.clear(WorkspaceId(ONE))
        assert await read_progress(client) == (ONE, "ARCHIVING", NOTHING)


async def test_nothing_is_read_when_no_operation_runs_or_no_client_is_connected(
    harness: Harness, board: WatchedBoard
) -> None:
    await board.post(WorkspaceId(ONE), HALFWAY)
    async with harness.hub.connect(ANN) as client:
        await read(client)
        harness.change(ANN, ONE, "second")
        await read(client)
        assert board.reads == []
        await begin(harness, client)
        await read_progress(client)
        harness.begin(ANN, ONE, Operation.NONE)
        await read(client)
        await until_idle(harness)
    assert board.reads
    assert {frozenset(read_ids) for read_ids in board.reads} == {frozenset({ONE})}
    harness.table.operations[ONE] = Operation.ARCHIVING
    async with harness.hub.connect(ANN) as client:
        await read(client)
        await read_progress(client)
    await until_idle(harness)


async def until_idle(harness: Harness) -> None:
    async def quiet() -> bool:
        return not harness.hub._progress._wanted.is_set()

    await until(quiet, "reading has stopped")


async def test_one_read_serves_all_users_and_each_gets_only_their_own(
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
        await board.until_next_read()
    assert {ONE, TWO} in board.reads


async def test_a_client_that_joins_later_gets_progress_after_the_snapshot(
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
        # So does a client that needs no snapshot: progress does not change the event id.
        async with harness.hub.connect(ANN, last_event_id=snapshot.id) as returned:
            assert await read(returned) == Event("heartbeat", {})
            assert (await read_progress(returned))[2][1] == 42


async def test_a_new_operation_begins_without_the_progress_of_the_last(
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


async def test_an_outage_of_the_board_ends_no_stream(harness: Harness, board: WatchedBoard) -> None:
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


async def test_a_client_is_not_dropped_for_unread_progress(harness: Harness, board: WatchedBoard) -> None:
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
