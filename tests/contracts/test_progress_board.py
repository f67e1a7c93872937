"""What every board of progress promises."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.progress_board import RedisProgressBoard
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress, ProgressBoard
from tests.boards import posted
from tests.fakes import FakeProgressBoard
from tests.redis_server import RedisServer, running_redis
from tests.waiting import until

ONE, OTHER = WorkspaceId("one"), WorkspaceId("other")
STARTED = Progress("restore")
HALFWAY = Progress("download", 21, 42)
WAITING = Progress("wait for the IDE", 3, None, "seconds")
LONG, SHORT = 600.0, 0.05


class Bench(Protocol):
    board: ProgressBoard

    def lose(self) -> None: ...

    def restore(self) -> None: ...


class FakeBench:
    def __init__(self, lifetime_seconds: float) -> None:
        self._fake = FakeProgressBoard(lifetime_seconds)
        self.board: ProgressBoard = self._fake

    def lose(self) -> None:
        self._fake.is_up = False

    def restore(self) -> None:
        self._fake.is_up = True


class RedisBench:
    def __init__(self, server: RedisServer, client: Redis, lifetime_seconds: float) -> None:
        self.board: ProgressBoard = RedisProgressBoard(client, lifetime_seconds=lifetime_seconds)
        self._server = server

    def lose(self) -> None:
        self._server.kill()

    def restore(self) -> None:
        assert self._server.start()


@asynccontextmanager
async def opened(kind: str, directory: Path, lifetime_seconds: float) -> AsyncIterator[Bench]:
    if kind == "fake":
        yield FakeBench(lifetime_seconds)
        return
    with running_redis(directory) as server:
        async with create_client(server.url) as client:
            yield RedisBench(server, client, lifetime_seconds)


@pytest.fixture(params=["fake", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def bench(kind: str, tmp_path: Path) -> AsyncIterator[Bench]:
    async with opened(kind, tmp_path, LONG) as bench:
        yield bench


@pytest.mark.parametrize("progress", [STARTED, HALFWAY, WAITING], ids=lambda progress: progress.step)
async def test_progress_is_read_as_it_was_posted(bench: Bench, progress: Progress) -> None:
    await bench.board.post(ONE, progress)
    assert await posted(bench.board, ONE) == progress


async def test_the_latest_of_each_workspace_is_read(bench: Bench) -> None:
    for workspace_id, progress in ((ONE, STARTED), (OTHER, WAITING), (ONE, HALFWAY)):
        await bench.board.post(workspace_id, progress)
    assert (await posted(bench.board, ONE), await posted(bench.board, OTHER)) == (HALFWAY, WAITING)


async def test_what_was_cleared_or_never_posted_is_not_there(bench: Bench) -> None:
    for workspace_id in (ONE, OTHER):
        await bench.board.post(workspace_id, STARTED)
    await bench.board.clear(ONE)
    await bench.board.clear(ONE)
    assert (await posted(bench.board, ONE), await posted(bench.board, OTHER)) == (None, STARTED)
    assert await posted(bench.board, WorkspaceId("never posted")) is None


async def test_many_are_read_at_once_without_those_that_have_none(bench: Bench) -> None:
    await bench.board.post(ONE, HALFWAY)
    await bench.board.post(OTHER, WAITING)
    asked = (ONE, WorkspaceId("never posted"), OTHER)
    assert await bench.board.read(asked) == {ONE: HALFWAY, OTHER: WAITING}
    assert await bench.board.read([OTHER]) == {OTHER: WAITING}
    assert await bench.board.read([]) == {}


async def test_what_is_not_posted_again_is_forgotten(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path, SHORT) as bench:
        await bench.board.post(ONE, STARTED)

        async def is_forgotten() -> bool:
            return await posted(bench.board, ONE) is None

        await until(is_forgotten, "the progress is forgotten")


async def test_an_outage_raises_nothing_and_shows_nothing(bench: Bench) -> None:
    await bench.board.post(ONE, STARTED)
    bench.lose()
    await bench.board.post(ONE, HALFWAY)
    assert await posted(bench.board, ONE) is None
    assert await bench.board.read([ONE, OTHER]) is None
    await bench.board.clear(ONE)
    bench.restore()
    await bench.board.post(ONE, WAITING)
    assert await posted(bench.board, ONE) == WAITING
