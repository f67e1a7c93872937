"""Wait for the phase of a workspace with LISTEN, because polling would disturb the measurement."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from codehub.bootstrap import database_url_of
from codehub.db.session import connect
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation, Phase
from testkit.deployment import Deployment

CHANNEL = "ws_sse"
# Kubelets take a minute to remove 50 Pods, on a busy machine more.
DEADLINE_SECONDS = 300


@dataclass
class PhaseWaiter:
    """Waits for phases; PostgreSQL notifies it of every change."""

    deployment: Deployment
    changed: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    def notify(self, _connection: object, _process_id: int, _channel: str, payload: str) -> None:
        self.changed[json.loads(payload)["id"]].set()

    async def wait_for(self, workspace_id: WorkspaceId, phase: Phase) -> None:
        """Return when the workspace is in this phase and no operation is running."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                self.changed[workspace_id].clear()
                row = await self.deployment.look(workspace_id)
                if (row.phase, row.operation) == (phase, Operation.NONE):
                    return
                if row.phase is Phase.ERROR:
                    raise RuntimeError(f"{row.error_reason}: {row.error_message}")
                await self.changed[workspace_id].wait()


@asynccontextmanager
async def open_waiter(deployment: Deployment) -> AsyncIterator[PhaseWaiter]:
    connection = await connect(database_url_of(deployment.settings))
    try:
        waiter = PhaseWaiter(deployment)
        await connection.add_listener(CHANNEL, waiter.notify)
        yield waiter
    finally:
        await connection.close()
