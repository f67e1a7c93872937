"""The contract of `ProgressBoard`, for every implementation."""

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
from testkit.fakes import FakeProgressBoard
from testkit.redis_server import RedisServer, running_redis
from testkit.waiting import until
from tests.progress_boards import posted

ONE, OTHER = WorkspaceId("one"), WorkspaceId("other")
STARTED = Progress("restore")
HALFWAY = Progress("download", 21, 42)
WAITING = Progress("wait for the IDE", 3, None, "seconds")
LONG, SHORT = 600.0, 0.05


class Harness(Protocol):
    board: ProgressBoard

    def lose(self) -> None: ...

    def restore(self) -> None: ...


class FakeHarness:
    def __init__(self, lifetime_seconds: float) -> None:
        self._fake = FakeProgressBoard(lifetime_seconds)
        self.board: ProgressBoard = self._fake

    def lose(self) -> None:
        self._fake.is_up = False

    def restore(self) -> None:
        self._fake.is_up = True


class RedisHarness:
    def __init__(self, server: RedisServer, client: Redis, lifetime_seconds: float) -> None:
        self.board: ProgressBoard = RedisProgressBoard(client, lifetime_seconds=lifetime_seconds)
        self._server = server

    def lose(self) -> None:
        self._server.kill()

    def restore(self) -> None:
        assert self._server.start()


@asynccontextmanager
async def opened(kind: str, directory: Path, lifetime_seconds: float) -> AsyncIterator[Harness]:
    if kind == "fake":
        yield FakeHarness(lifetime_seconds)
        return
    with running_redis(directory) as server:
        async with create_client(server.url) as client:
            yield RedisHarness(server, client, lifetime_seconds)


@pytest.fixture(params=["fake", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def harness(kind: str, tmp_path: Path) -> AsyncIterator[Harness]:
    async with opened(kind, tmp_path, LONG) as harness:
        yield harness


@pytest.mark.parametrize("progress", [STARTED, HALFWAY, WAITING], ids=lambda progress: progress.step)
async def test_progress_is_read_as_it_was_posted(harness: Harness, progress: Progress) -> None:
    await harness.board.post(ONE, progress)
    assert await posted(harness.board, ONE) == progress


async def test_the_latest_of_each_workspace_is_read(harness: Harness) -> None:
    for workspace_id, progress in ((ONE, STARTED), (OTHER, WAITING), (ONE, HALFWAY)):
        await harness.board.post(workspace_id, progress)
    assert (await posted(harness.board, ONE), await posted(harness.board, OTHER)) == (HALFWAY, WAITING)


async def test_cleared_progress_is_not_read(harness: Harness) -> None:
    for workspace_id in (ONE, OTHER):
        await harness.board.post(workspace_id, STARTED)
    await harness.board.clear(ONE)
    await harness.board.clear(ONE)
    assert (await posted(harness.board, ONE), await posted(harness.board, OTHER)) == (None, STARTED)
    assert await posted(harness.board, WorkspaceId("never posted")) is None


async def test_many_are_read_at_once_without_those_that_have_none(harness: Harness) -> None:
    await harness.board.post(ONE, HALFWAY)
    await harness.board.post(OTHER, WAITING)
    asked = (ONE, WorkspaceId("never posted"), OTHER)
    assert await harness.board.read(asked) == {ONE: HALFWAY, OTHER: WAITING}
    assert await harness.board.read([OTHER]) == {OTHER: WAITING}
    assert await harness.board.read([]) == {}


async def test_progress_that_is_not_posted_again_expires(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path, SHORT) as harness:
        await harness.board.post(ONE, STARTED)

        async def is_forgotten() -> bool:
            return await posted(harness.board, ONE) is None

        await until(is_forgotten, "the progress is forgotten")


async def test_an_outage_raises_nothing_and_shows_nothing(harness: Harness) -> None:
    await harness.board.post(ONE, STARTED)
    harness.lose()
    await harness.board.post(ONE, HALFWAY)
    assert await posted(harness.board, ONE) is None
    assert await harness.board.read([ONE, OTHER]) is None
    await harness.board.clear(ONE)
    harness.restore()
    await harness.board.post(ONE, WAITING)
    assert await posted(harness.board, ONE) == WAITING
