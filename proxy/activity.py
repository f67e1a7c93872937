"""When each workspace was last used: noted here at once, handed to the buffer now and then."""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NoReturn

from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.ports import ActivityBuffer
from proxy.activity_rules import ActivityRules, MessageRules, rules_for
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import ActivityObserver

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 30.0
# Who types uses it all the time; nobody needs to know that to the second.
SATED_SECONDS = 2.0
# Nobody types as fast; what a program floods us with is not worth more looks.
LOOKS_PER_SECOND = 100


def utc_now() -> datetime:
    return datetime.now(UTC)


class ActivityLog:
    """The last use of each workspace, until the buffer has it."""

    def __init__(
        self,
        buffer: ActivityBuffer,
        now: Callable[[], datetime] = utc_now,
        *,
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self._buffer = buffer
        self._now = now
        self._period = period_seconds
        self._used_at: dict[WorkspaceId, datetime] = {}
        self._down = False
        self.uses_noted = 0
        self.flush_failures = 0

    @property
    def pending(self) -> int:
        """How many workspaces have been used since the buffer was told."""
        return len(self._used_at)

    def observe(self, workspace_id: WorkspaceId, ide: str, path: bytes) -> ActivityObserver:
        """Whom to tell of one request and its messages; the path has neither prefix nor query."""
        return Watch(self, workspace_id, rules_for(ide), path)

    def note(self, workspace_id: WorkspaceId) -> None:
        self._used_at[workspace_id] = self._now()
        self.uses_noted += 1

    async def run(self) -> NoReturn:
        """Flush in every period; ends only by being cancelled."""
        while True:
            await asyncio.sleep(self._period)
            await self.flush()

    async def flush(self) -> None:
        """Tell the buffer. What it did not take is kept for the next time, and so is what came meanwhile."""
        told = dict(self._used_at)
        if not told:
            return
        try:
            await self._buffer.record(told)
        except Exception as error:
            # Whatever it is, the next period tries again; until then nothing is lost.
            self.flush_failures += 1
            if not isinstance(error, Transient):
                logger.exception("the use of workspaces could not be handed on")
            elif not self._down:
                logger.warning("the use of workspaces waits in memory: %s", error)
            self._down = True
            return
        self._forget(told)
        if self._down:
            logger.info("the buffer takes the use of workspaces again")
        self._down = False

    def _forget(self, told: dict[WorkspaceId, datetime]) -> None:
        for workspace_id, moment in told.items():
            if self._used_at.get(workspace_id) == moment:
                del self._used_at[workspace_id]


class Watch(ActivityObserver):
    """Notes the use of one workspace by one request, or by the messages of one WebSocket."""

    __slots__ = (
        "_book", "_counts_until", "_looks", "_messages", "_path", "_rests_until", "_rules", "_workspace_id",
    )  # fmt: skip

    def __init__(
        self, book: ActivityLog, workspace_id: WorkspaceId, rules: ActivityRules, path: bytes
    ) -> None:
        self._book = book
        self._workspace_id = workspace_id
        self._rules = rules
        self._path = path
        self._messages: MessageRules | None = None
        self._rests_until = self._counts_until = -math.inf
        self._looks = 0

    def request(self, head: RequestHead) -> None:
        if self._rules.is_use_request(self._path, head):
            self._book.note(self._workspace_id)

    def message(self, opcode: int, length: int, start: bytes) -> None:
        if self._messages is None:
            self._messages = self._rules.messages_at(self._path)
        if self._messages.is_use(opcode, length, start):
            self._rests_until = time.monotonic() + SATED_SECONDS
            self._book.note(self._workspace_id)
        self._looks += 1

    def is_saturated(self) -> bool:
        now = time.monotonic()
        if now >= self._counts_until:
            self._counts_until, self._looks = now + 1, 0
        return now < self._rests_until or self._looks >= LOOKS_PER_SECOND
