"""When each workspace was last used, as a sorted set: the member is the workspace, the score the time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

from redis.asyncio import Redis

from codehub.adapters.redis.connection import translated_errors
from codehub.domain.conditions import WorkspaceId

ACTIVITY_KEY = "codehub:activity"

# A plain ZREM would also remove a use that came after the stored one was read.
DISCARD = """
for i = 1, #ARGV, 2 do
    local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
    if score and tonumber(score) <= tonumber(ARGV[i + 1]) then
        redis.call('ZREM', KEYS[1], ARGV[i])
    end
end
"""


class RedisActivityBuffer:
    """An `ActivityBuffer`; times are kept to the millisecond, the oldest are taken first."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._discard = client.register_script(DISCARD)

    async def record(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        if not used_at:
            return
        with translated_errors():
            await self._client.zadd(ACTIVITY_KEY, _scores(used_at), gt=True)

    async def take(self, limit: int) -> Mapping[WorkspaceId, datetime]:
        with translated_errors():
            entries = await self._client.zrange(
                ACTIVITY_KEY, "-inf", "+inf", byscore=True, offset=0, num=limit, withscores=True
            )
        pairs = cast("list[tuple[str, float]]", entries)
        return {WorkspaceId(member): datetime.fromtimestamp(score, UTC) for member, score in pairs}

    async def discard(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        if not used_at:
            return
        with translated_errors():
            await self._discard(
                keys=[ACTIVITY_KEY], args=[part for entry in _scores(used_at).items() for part in entry]
            )


def _scores(used_at: Mapping[WorkspaceId, datetime]) -> dict[str, float]:
    return {workspace_id: round(moment.timestamp(), 3) for workspace_id, moment in used_at.items()}
