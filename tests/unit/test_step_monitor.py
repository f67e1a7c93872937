"""A step sends heartbeats and shows its progress to people, but never waits for the progress board."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from temporalio.testing import ActivityEnvironment

from activities import step_monitor
from activities.step_monitor import cancel_when_stalled, visible_progress
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import Progress
from testkit.fakes import FakeProgressBoard
from testkit.waiting import until
from tests.progress_boards import posted

ONE = WorkspaceId("one")
STARTED, HALFWAY = Progress("restore"), Progress("download", 21, 42)
SOON, NEVER = 0.01, 600.0


class SilentBoard(FakeProgressBoard):
    """Blocks until it is freed."""

    def __init__(self) -> None:
        super().__init__(NEVER)
        self.free = asyncio.Event()

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        await self.free.wait()
        await super().post(workspace_id, progress)

    async def clear(self, workspace_id: WorkspaceId) -> None:
        await self.free.wait()
        await super().clear(workspace_id)


class Heartbeats(list[Progress]):
    """The heartbeats of a step."""

    async def during(self, step: Callable[[], Awaitable[None]]) -> None:
        environment = ActivityEnvironment()
        environment.on_heartbeat = self.append
        await environment.run(step)


def heartbeat_every(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_monitor, "INTERVAL_SECONDS", seconds)


async def until_shown(board: FakeProgressBoard, expected: Progress | None) -> None:
    async def is_shown() -> bool:
        return await posted(board, ONE) == expected

    await until(is_shown, f"{expected} is shown")


async def test_progress_is_shown_at_once_and_no_longer_than_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat_every(NEVER, monkeypatch)
    board = FakeProgressBoard(NEVER)

    async def step() -> None:
        async with visible_progress("restore", board, ONE):
            await until_shown(board, STARTED)

    await Heartbeats().during(step)
    await until_shown(board, None)


async def test_every_heartbeat_has_the_latest_progress_for_temporal_and_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heartbeat_every(SOON, monkeypatch)
    board, beats = FakeProgressBoard(NEVER), Heartbeats()

    async def is_reported() -> bool:
        return HALFWAY in beats

    async def step() -> None:
        async with visible_progress("restore", board, ONE) as report:
            report(HALFWAY)
            await until_shown(board, HALFWAY)
            await until(is_reported, "Temporal is told")

    await beats.during(step)


async def test_a_failed_step_clears_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat_every(SOON, monkeypatch)
    board = FakeProgressBoard(NEVER)

    async def step() -> None:
        async with visible_progress("restore", board, ONE):
            await until_shown(board, STARTED)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Heartbeats().during(step)
    await until_shown(board, None)


async def test_a_board_that_does_not_respond_delays_neither_heartbeats_nor_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heartbeat_every(SOON, monkeypatch)
    board, beats = SilentBoard(), Heartbeats()

    async def heartbeats_continue() -> bool:
        return len(beats) > 3

    async def step() -> None:
        async with visible_progress("restore", board, ONE):
            await until(heartbeats_continue, "beats go on")

    await beats.during(step)
    board.free.set()

    async def is_done() -> bool:
        return not step_monitor._background_tasks

    await until(is_done, "the board has answered")
    assert await posted(board, ONE) is None


class Clock:
    """The time of the event loop, moved only by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        # Once for what is due, and once for what follows from it.
        for _ in range(2):
            await asyncio.sleep(0)


async def test_a_step_that_makes_progress_is_not_cancelled_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    async with cancel_when_stalled("restore", 600) as report:
        for _ in range(1000):
            await clock.advance(599)
            report(HALFWAY)


async def test_a_step_without_progress_is_cancelled_and_can_be_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)

    async def step() -> None:
        async with cancel_when_stalled("restore", 600) as report:
            report(HALFWAY)
            await clock.advance(601)

    with pytest.raises(Transient, match="The step “download” made no progress for 600 s") as caught:
        await step()
    assert caught.value.reason is ErrorReason.ACTION_FAILED


async def test_a_late_report_does_not_disturb_the_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def step() -> None:
        async with cancel_when_stalled("restore", 600) as report:
            try:
                await clock.advance(601)
            finally:
                report(HALFWAY)

    with pytest.raises(Transient, match="so it was cancelled"):
        await step()


async def test_a_step_s_own_timeout_is_its_own_failure() -> None:
    with pytest.raises(TimeoutError):
        async with cancel_when_stalled("restore", NEVER):
            raise TimeoutError
