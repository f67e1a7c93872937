"""How far operations are, for whoever follows them live: one look a second for the whole process."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn, Protocol

from api.live.knowledge import LiveWorkspace
from api.live.wire import Frame
from api.schemas.progress import ProgressView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation
from codehub.ports import Progress, ProgressBoard
from codehub.services.convergence import shown_progress

PROGRESS = "workspace_progress"


@dataclass(frozen=True, slots=True)
class Told:
    """What clients were told last of an operation."""

    operation: Operation
    progress: Progress | None
    frame: bytes


class UnderWay:
    """The operations under way of one user, and what was last told of each."""

    __slots__ = ("_since", "_told", "operations")

    def __init__(self) -> None:
        self.operations: dict[str, Operation] = {}
        self._since: dict[str, datetime | None] = {}
        self._told: dict[str, Told] = {}

    def learn(self, rows: Sequence[LiveWorkspace], asked: Collection[str] | None) -> None:
        """Take in what was found of those asked for, or of all."""
        for workspace_id in list(self.operations) if asked is None else asked:
            self.operations.pop(workspace_id, None)
            self._since.pop(workspace_id, None)
        for row in rows:
            if row.operation is not Operation.NONE:
                self.operations[row.id] = row.operation
                self._since[row.id] = row.op_started_at
        for workspace_id, told in list(self._told.items()):
            if self.operations.get(workspace_id) is not told.operation:
                del self._told[workspace_id]

    def tell(self, found: Mapping[WorkspaceId, Progress] | None, now: datetime) -> bytes:
        """Frames for what differs from what was told."""
        news = []
        for workspace_id, operation in self.operations.items():
            progress = shown_progress(found, WorkspaceId(workspace_id), self._since[workspace_id], now)
            told = self._told.get(workspace_id)
            if progress != (told.progress if told else None):
                # Without an id, so that the browser keeps the last one.
                view = view_of(workspace_id, operation, progress, now)
                frame = Frame(PROGRESS, view.model_dump_json()).encode()
                self._told[workspace_id] = Told(operation, progress, frame)
                news.append(frame)
        return b"".join(news)

    def repeat(self) -> bytes:
        """Frames for all that was told, for somebody new."""
        return b"".join(told.frame for told in self._told.values())


class Followers(Protocol):
    """The streams of one user."""

    under_way: UnderWay

    @property
    def are_there(self) -> bool:
        """Whether anybody is left."""

    def hint(self, data: bytes) -> None:
        """Send it to all of them."""


class ProgressTicker:
    """Looks only while something is under way that somebody follows, and all of it in one look."""

    def __init__(self, board: ProgressBoard, period_seconds: float) -> None:
        self._board = board
        self._period_seconds = period_seconds
        self._followers: set[Followers] = set()
        self._wanted = asyncio.Event()

    def follow(self, followers: Followers) -> None:
        """Tell them from now on, until nothing of theirs is under way or nobody is left."""
        if followers.are_there and followers.under_way.operations:
            self._followers.add(followers)
            self._wanted.set()

    async def run(self) -> NoReturn:
        while True:
            await self._wanted.wait()
            await self._look()
            await asyncio.sleep(self._period_seconds)

    async def _look(self) -> None:
        self._followers = {each for each in self._followers if each.are_there and each.under_way.operations}
        ids = [WorkspaceId(key) for each in self._followers for key in each.under_way.operations]
        if not ids:
            self._wanted.clear()
            return
        found = await self._board.read(ids)
        now = datetime.now(UTC)
        for each in self._followers:
            if data := each.under_way.tell(found, now):
                each.hint(data)


def view_of(
    workspace_id: str, operation: Operation, progress: Progress | None, now: datetime
) -> ProgressView:
    return ProgressView(
        id=workspace_id,
        operation=operation,
        step=progress.step if progress else None,
        done=progress.done if progress else 0,
        total=progress.total if progress else None,
        unit=progress.unit if progress else None,
        at=now,
    )
