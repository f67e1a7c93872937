"""Progress of running operations on event streams: one read per second for the whole process."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn, TypeAlias

from api.live.wire import Frame, LiveWorkspace
from api.schemas.history import ProgressView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation
from codehub.ports import Progress, ProgressBoard
from codehub.services.convergence import shown_progress

PROGRESS = "workspace_progress"
SendProgress: TypeAlias = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class SentProgress:
    """The last progress that was sent for an operation."""

    operation: Operation
    progress: Progress | None
    frame: bytes


class RunningOperations:
    """The running operations of one user, and the progress last sent for each."""

    __slots__ = ("_sent", "_started_at", "by_workspace")

    def __init__(self) -> None:
        self.by_workspace: dict[str, Operation] = {}
        self._started_at: dict[str, datetime | None] = {}
        self._sent: dict[str, SentProgress] = {}

    def __bool__(self) -> bool:
        return bool(self.by_workspace)

    def clear(self) -> None:
        self.update((), None)

    def update(self, rows: Sequence[LiveWorkspace], asked: Collection[str] | None) -> None:
        """Store the rows; ids in `asked` (None: all) without a row run nothing."""
        for workspace_id in list(self.by_workspace) if asked is None else asked:
            self.by_workspace.pop(workspace_id, None)
            self._started_at.pop(workspace_id, None)
        for row in rows:
            if row.operation is not Operation.NONE:
                self.by_workspace[row.id] = row.operation
                self._started_at[row.id] = row.op_started_at
        for workspace_id, sent in list(self._sent.items()):
            if self.by_workspace.get(workspace_id) is not sent.operation:
                del self._sent[workspace_id]

    def frames_for(self, found: Mapping[WorkspaceId, Progress] | None, now: datetime) -> bytes:
        """Encode frames for progress that differs from what was sent."""
        frames = []
        for workspace_id, operation in self.by_workspace.items():
            progress = shown_progress(found, WorkspaceId(workspace_id), self._started_at[workspace_id], now)
            sent = self._sent.get(workspace_id)
            if progress != (sent.progress if sent else None):
                # Without an id, so that the browser keeps the last one.
                view = progress_view(workspace_id, operation, progress, now)
                frame = Frame(PROGRESS, view.model_dump_json()).encode()
                self._sent[workspace_id] = SentProgress(operation, progress, frame)
                frames.append(frame)
        return b"".join(frames)

    def frames_sent(self) -> bytes:
        """Return everything sent so far, for a client that joins."""
        return b"".join(sent.frame for sent in self._sent.values())


class ProgressPoller:
    """Reads the progress of all watched operations at once, and nothing while none is running."""

    def __init__(self, board: ProgressBoard, period_seconds: float) -> None:
        self._board = board
        self._period_seconds = period_seconds
        self._watched: dict[RunningOperations, SendProgress] = {}
        self._wanted = asyncio.Event()

    def watch(self, operations: RunningOperations, send: SendProgress) -> None:
        """Send their progress until none of them is running."""
        if operations:
            self._watched[operations] = send
            self._wanted.set()

    async def run(self) -> NoReturn:
        while True:
            await self._wanted.wait()
            await self._poll()
            await asyncio.sleep(self._period_seconds)

    async def _poll(self) -> None:
        self._watched = {operations: send for operations, send in self._watched.items() if operations}
        ids = [WorkspaceId(key) for operations in self._watched for key in operations.by_workspace]
        if not ids:
            self._wanted.clear()
            return
        found = await self._board.read(ids)
        now = datetime.now(UTC)
        for operations, send in self._watched.items():
            if data := operations.frames_for(found, now):
                send(data)


def progress_view(
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
