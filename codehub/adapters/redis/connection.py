"""Creates Redis clients and translates their errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

TIMEOUT_SECONDS = 3.0
HEALTH_CHECK_SECONDS = 15


def create_client(url: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Redis:
    """Return a client that connects on first use; close it with `await client.aclose()`."""
    return Redis.from_url(
        url,
        decode_responses=True,
        # Bytes that are not text must not break the whole response.
        encoding_errors="surrogateescape",
        socket_timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        health_check_interval=HEALTH_CHECK_SECONDS,
        # One retry for a pooled connection that has died. Callers decide about any other.
        retry=Retry(NoBackoff(), retries=1),
    )


@contextmanager
def translate_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise Transient(ErrorReason.UNREACHABLE, f"Redis cannot be used: {reason}") from error


async def redis_version(url: str) -> str:
    """Return the version of the server."""
    with translate_errors():
        async with create_client(url) as client:
            return str((await client.info("server"))["redis_version"])
