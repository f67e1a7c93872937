"""Publishes live updates: one channel per user, and one that every server of live updates follows."""

from redis.asyncio import Redis

from codehub.adapters.redis.connection import translate_errors

RESYNC_CHANNEL = "codehub:sse-resync"


def user_channel(user_id: str) -> str:
    return f"codehub:sse:{user_id}"


class RedisEventBus:
    """An `EventBus` that can also broadcast."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def publish(self, user_id: str, message: str) -> None:
        await self._publish(user_channel(user_id), message)

    async def broadcast(self, message: str) -> None:
        """Send to every server of live updates."""
        await self._publish(RESYNC_CHANNEL, message)

    async def _publish(self, channel: str, message: str) -> None:
        with translate_errors():
            await self._client.publish(channel, message)
