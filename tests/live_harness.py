"""A live hub on a fake table, and helpers that read its streams."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from api.live.client import LiveClient
from api.live.feed import LiveTiming
from api.live.hub import LiveHub
from api.live.wire import LiveWorkspace
from codehub.domain.states import Operation
from codehub.ports import ProgressBoard
from testkit.fake_subscription import FakeSubscription
from testkit.fakes import FakeProgressBoard
from testkit.waiting import DEADLINE_SECONDS

# Heartbeats are so rare that no test gets one.
QUICK = LiveTiming(gather=0.01, heartbeat=30_000, progress=0.01, first_delay=0.01, max_delay=0.05)


@dataclass(frozen=True)
class Event:
    """A server-sent event, decoded."""

    name: str
    data: Any
    id: str | None = None


def parse(data: bytes) -> Event:
    assert data.endswith(b"\n\n")
    fields = dict(line.split(": ", 1) for line in data.decode().strip().split("\n"))
    return Event(fields["event"], json.loads(fields["data"]), fields.get("id"))


async def read(client: LiveClient) -> Event:
    async with asyncio.timeout(DEADLINE_SECONDS):
        return parse(await anext(client))


async def rest(client: LiveClient) -> list[bytes]:
    """Read everything up to the end of the stream."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        return [data async for data in client]


class Table:
    """Workspaces by owner and id; a read raises one of `failures`, and waits until `free` is set."""

    def __init__(self) -> None:
        self.names: dict[tuple[UUID, str], str] = {}
        self.operations: dict[str, Operation] = {}
        self.reads: list[set[str] | None] = []
        self.failures: list[Exception] = []
        self.free = asyncio.Event()
        self.free.set()

    def put(self, owner: UUID, workspace_id: str, name: str) -> None:
        self.names[owner, workspace_id] = name

    async def load(self, user_id: UUID, ids: Collection[str] | None) -> Sequence[LiveWorkspace]:
        self.reads.append(None if ids is None else set(ids))
        found = [
            LiveWorkspace(
                workspace_id,
                json.dumps({"id": workspace_id, "name": name}),
                self.operations.get(workspace_id, Operation.NONE),
            )
            for (owner, workspace_id), name in self.names.items()
            if owner == user_id and (ids is None or workspace_id in ids)
        ]
        await self.free.wait()
        if self.failures:
            raise self.failures.pop()
        return found


class Harness:
    def __init__(
        self, timing: LiveTiming = QUICK, table: Table | None = None, board: ProgressBoard | None = None
    ) -> None:
        self.table = table or Table()
        self.subscription = FakeSubscription()
        self.board = board or FakeProgressBoard()
        self.hub = LiveHub(self.subscription, self.table.load, self.board, timing=timing)

    def change(self, owner: UUID, workspace_id: str, name: str) -> None:
        self.table.put(owner, workspace_id, name)
        self.announce(owner, workspace_id)

    def begin(self, owner: UUID, workspace_id: str, operation: Operation) -> None:
        self.table.operations[workspace_id] = operation
        self.change(owner, workspace_id, f"in {operation}")

    def delete(self, owner: UUID, workspace_id: str) -> None:
        del self.table.names[owner, workspace_id]
        self.announce(owner, workspace_id, "workspace_deleted")

    def revoke(self, user_id: UUID) -> None:
        """Announce a revoked credential of the user, as the relay does."""
        self.announce(user_id, str(uuid4()), "credentials_changed")

    def announce(self, owner: UUID, workspace_id: str, event: str = "workspace_updated") -> None:
        self.subscription.publish(str(owner), json.dumps({"event": event, "id": workspace_id}))


@asynccontextmanager
async def running(
    timing: LiveTiming = QUICK, table: Table | None = None, board: ProgressBoard | None = None
) -> AsyncIterator[Harness]:
    harness = Harness(timing, table, board)
    task = asyncio.create_task(harness.hub.run())
    # Let the subscription start first.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    try:
        yield harness
    finally:
        await harness.hub.close()
        task.cancel()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError), outcome


def beating(seconds: float) -> LiveTiming:
    return replace(QUICK, heartbeat=seconds)
