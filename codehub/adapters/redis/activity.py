"""The last use of each workspace in a sorted set: the member is the workspace, the score the time."""

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import cast

from redis.asyncio import Redis

from codehub.adapters.redis.connection import translate_errors
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import parse_workspace_id
from codehub.ports import ActivityBatch

_log = logging.getLogger(__name__)

ACTIVITY_KEY = "codehub:activity"

# Python's times have microseconds; scores written by other clients can be finer.
TICK = 1e-6
# A plain ZREM would also remove a later use that arrived after the entry was read.
DISCARD = """
for i = 1, #ARGV, 2 do
    local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
    if score and tonumber(score) <= tonumber(ARGV[i + 1]) then
        redis.call('ZREM', KEYS[1], ARGV[i])
    end
end
"""


class RedisActivityBuffer:
    """An `ActivityBuffer` with millisecond precision. It returns the oldest uses first."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._discard = client.register_script(DISCARD)

    async def record(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        if not used_at:
            return
        with translate_errors():
            await self._client.zadd(ACTIVITY_KEY, _scores(used_at), gt=True)

    async def take(self, limit: int) -> ActivityBatch:
        with translate_errors():
            entries = await self._client.zrange(
                ACTIVITY_KEY, "-inf", "+inf", byscore=True, offset=0, num=limit, withscores=True
            )
        uses, rejected = _parse(cast("list[tuple[str, float]]", entries))
        if rejected:
            _log.warning(
                "removed %d invalid entries of %s, for example %.80r",
                *(len(rejected), ACTIVITY_KEY, next(iter(rejected.items()))),
            )
            await self._remove(rejected)
        return ActivityBatch(uses, len(rejected))

    async def discard(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        if used_at:
            await self._remove({each: moment.timestamp() + TICK for each, moment in used_at.items()})

    async def _remove(self, scores: Mapping[str, float]) -> None:
        with translate_errors():
            await self._discard(
                keys=[ACTIVITY_KEY], args=[part for entry in scores.items() for part in entry]
            )


def _parse(entries: Iterable[tuple[str, float]]) -> tuple[dict[WorkspaceId, datetime], dict[str, float]]:
    """Split entries into valid and invalid ones: any client of Redis can write anything here."""
    uses: dict[WorkspaceId, datetime] = {}
    rejected: dict[str, float] = {}
    for member, score in entries:
        try:
            uses[parse_workspace_id(member)] = datetime.fromtimestamp(score, UTC)
        except (ValueError, OverflowError, OSError):
            rejected[member] = score
    return uses, rejected


def _scores(used_at: Mapping[WorkspaceId, datetime]) -> dict[str, float]:
    return {workspace_id: round(moment.timestamp(), 3) for workspace_id, moment in used_at.items()}
