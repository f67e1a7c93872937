"""Records when each workspace was last used, and hands that to the buffer periodically."""

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
# A person who types is active all the time; two seconds are precise enough.
SATURATED_SECONDS = 2.0
# People type slower than this; a program that floods the connection is not worth more checks.
CHECKS_PER_SECOND = 100


def utc_now() -> datetime:
    return datetime.now(UTC)


class ActivityLog:
    """The last activity of each workspace that the buffer has not taken yet."""

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
        """How many workspaces have activity that was not handed on yet."""
        return len(self._used_at)

    def observe(self, workspace_id: WorkspaceId, ide: str, path: bytes) -> ActivityObserver:
        """Return an observer for one request and its messages; the path has no prefix and no query."""
        return WorkspaceObserver(self, workspace_id, rules_for(ide), path)

    def note(self, workspace_id: WorkspaceId) -> None:
        self._used_at[workspace_id] = self._now()
        self.uses_noted += 1

    async def run(self) -> NoReturn:
        """Flush periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            await self.flush()

    async def flush(self) -> None:
        """Hand the recorded activity to the buffer; keep it for the next time if that fails."""
        pending = dict(self._used_at)
        if not pending:
            return
        try:
            await self._buffer.record(pending)
        except Exception as error:
            # Whatever the error, the next period tries again; nothing is lost until then.
            self.flush_failures += 1
            if not isinstance(error, Transient):
                logger.exception("the activity of workspaces could not be recorded")
            elif not self._down:
                logger.warning("the activity of workspaces waits in memory: %s", error)
            self._down = True
            return
        self._forget(pending)
        if self._down:
            logger.info("the activity of workspaces is recorded again")
        self._down = False

    def _forget(self, flushed: dict[WorkspaceId, datetime]) -> None:
        for workspace_id, moment in flushed.items():
            if self._used_at.get(workspace_id) == moment:
                del self._used_at[workspace_id]


class WorkspaceObserver(ActivityObserver):
    """Records the activity in one request, or in the messages of one WebSocket."""

    __slots__ = (
        "_checks",
        "_log",
        "_messages",
        "_path",
        "_rules",
        "_saturated_until",
        "_window_ends",
        "_workspace_id",
    )  # fmt: skip

    def __init__(
        self, log: ActivityLog, workspace_id: WorkspaceId, rules: ActivityRules, path: bytes
    ) -> None:
        self._log = log
        self._workspace_id = workspace_id
        self._rules = rules
        self._path = path
        self._messages: MessageRules | None = None
        self._saturated_until = self._window_ends = -math.inf
        self._checks = 0

    def request(self, head: RequestHead) -> None:
        if self._rules.is_activity_request(self._path, head):
            self._log.note(self._workspace_id)

    def message(self, opcode: int, length: int, start: bytes) -> None:
        if self._messages is None:
            self._messages = self._rules.messages_at(self._path)
        if self._messages.is_activity(opcode, length, start):
            self._saturated_until = time.monotonic() + SATURATED_SECONDS
            self._log.note(self._workspace_id)
        self._checks += 1

    def is_saturated(self) -> bool:
        now = time.monotonic()
        if now >= self._window_ends:
            self._window_ends, self._checks = now + 1, 0
        return now < self._saturated_until or self._checks >= CHECKS_PER_SECOND
