"""What the schedules are doing, as Temporal tells it."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from codehub import contracts
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import SweepState

TIMEOUT = timedelta(seconds=3)
SCHEDULES = (
    contracts.OBSERVE_SCHEDULE,
    contracts.TTL_SCHEDULE,
    contracts.GC_SCHEDULE,
    contracts.RETENTION_SCHEDULE,
)


class TemporalSweeps:
    """A `Sweeps`; the client may be a lazy one."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self) -> Sequence[SweepState]:
        try:
            async with asyncio.timeout(TIMEOUT.total_seconds()):
                states = await asyncio.gather(*map(self._read, SCHEDULES))
        # A lazy client that cannot connect raises RuntimeError.
        except (RPCError, RuntimeError, TimeoutError) as error:
            raise Transient(ErrorReason.UNREACHABLE, f"Temporal cannot be asked: {error}") from error
        return [state for state in states if state is not None]

    async def _read(self, schedule_id: str) -> SweepState | None:
        try:
            description = await self._client.get_schedule_handle(schedule_id).describe(rpc_timeout=TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        info = description.info
        return SweepState(
            schedule_id=schedule_id,
            paused=description.schedule.state.paused,
            running=bool(info.running_actions),
            last_started_at=info.recent_actions[-1].started_at if info.recent_actions else None,
            next_at=info.next_action_times[0] if info.next_action_times else None,
        )
