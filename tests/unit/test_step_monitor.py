"""A step beats for Temporal and shows its progress to people, but does not wait for anybody to see it."""

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
    """Takes forever until it is freed."""

    def __init__(self) -> None:
        super().__init__(NEVER)
        self.free = asyncio.Event()

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        await self.free.wait()
        await super().post(workspace_id, progress)

    async def clear(self, workspace_id: WorkspaceId) -> None:
        await self.free.wait()
        await super().clear(workspace_id)


class Beats(list[Progress]):
    """What Temporal hears of a step."""

    async def during(self, step: Callable[[], Awaitable[None]]) -> None:
        environment = ActivityEnvironment()
        environment.on_heartbeat = self.append
        await environment.run(step)


def beat_every(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_monitor, "INTERVAL_SECONDS", seconds)


async def until_shown(board: FakeProgressBoard, expected: Progress | None) -> None:
    async def is_shown() -> bool:
        return await posted(board, ONE) == expected

    await until(is_shown, f"{expected} is shown")


async def test_progress_is_shown_at_once_and_no_longer_than_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    beat_every(NEVER, monkeypatch)
    board = FakeProgressBoard(NEVER)

    async def step() -> None:
        async with visible_progress("restore", board, ONE):
            await until_shown(board, STARTED)

    await Beats().during(step)
    await until_shown(board, None)


async def test_every_beat_tells_temporal_and_people_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    beat_every(SOON, monkeypatch)
    board, beats = FakeProgressBoard(NEVER), Beats()

    async def is_told() -> bool:
        return HALFWAY in beats

    async def step() -> None:
        async with visible_progress("restore", board, ONE) as report:
            report(HALFWAY)
            await until_shown(board, HALFWAY)
            await until(is_told, "Temporal is told")

    await beats.during(step)


async def test_a_step_that_fails_shows_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    beat_every(SOON, monkeypatch)
    board = FakeProgressBoard(NEVER)

    async def step() -> None:
        async with visible_progress("restore", board, ONE):
            await until_shown(board, STARTED)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Beats().during(step)
    await until_shown(board, None)


async def test_a_board_that_does_not_answer_holds_up_neither_beats_nor_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beat_every(SOON, monkeypatch)
    board, beats = SilentBoard(), Beats()

    async def beats_go_on() -> bool:
        return len(beats) > 3

    async def step() -> None:
        async with visible_progress("restore", board, ONE):
            await until(beats_go_on, "beats go on")

    await beats.during(step)
    board.free.set()

    async def is_done() -> bool:
        return not step_monitor._background_tasks

    await until(is_done, "the board has answered")
    assert await posted(board, ONE) is None


class Clock:
    """The event loop's time, moved by the test alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        # Once for what is due now, once for what that leads to.
        for _ in range(2):
            await asyncio.sleep(0)


async def test_a_step_that_makes_progress_is_not_ended_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    async with cancel_when_stalled("restore", 600) as report:
        for _ in range(1000):
            await clock.advance(599)
            report(HALFWAY)


async def test_a_step_that_makes_no_progress_is_ended_and_can_be_tried_again(
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


async def test_a_report_that_comes_too_late_does_not_disturb_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
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
