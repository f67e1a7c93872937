"""The progress of steps in keys that expire, so that stale progress disappears."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Collection, Mapping
from dataclasses import asdict
from typing import TypeVar

from redis.asyncio import Redis

from codehub.adapters.redis.connection import translate_errors
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.ports import Progress

log = logging.getLogger(__name__)

T = TypeVar("T")

LIFETIME_SECONDS = 10.0
# Progress is best-effort: give up after this long.
RESPONSE_SECONDS = 1.0


def progress_key(workspace_id: WorkspaceId) -> str:
    return f"codehub:progress:{workspace_id}"


class RedisProgressBoard:
    """A `ProgressBoard`."""

    def __init__(self, client: Redis, *, lifetime_seconds: float = LIFETIME_SECONDS) -> None:
        self._client = client
        self._lifetime_milliseconds = round(lifetime_seconds * 1000)

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        content = json.dumps(asdict(progress))
        await _best_effort(
            self._client.set(progress_key(workspace_id), content, px=self._lifetime_milliseconds)
        )

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        ids = list(workspace_ids)
        contents = await _best_effort(self._client.mget([progress_key(each) for each in ids])) if ids else []
        if contents is None:
            return None
        pairs = zip(ids, contents, strict=True)
        found = {each: _parse(content) for each, content in pairs if content is not None}
        return {each: progress for each, progress in found.items() if progress is not None}

    async def clear(self, workspace_id: WorkspaceId) -> None:
        await _best_effort(self._client.delete(progress_key(workspace_id)))


async def _best_effort(response: Awaitable[T]) -> T | None:
    """Return the response, or None if Redis does not respond in time."""
    try:
        with translate_errors():
            async with asyncio.timeout(RESPONSE_SECONDS):
                return await response
    # UnicodeDecodeError: other clients can write anything there.
    except (Transient, UnicodeDecodeError) as error:
        log.debug("no progress: %s", error)
        return None


def _parse(text: str | bytes) -> Progress | None:
    """Parse an entry. Return None for an invalid one: any client of Redis can write there."""
    try:
        content = json.loads(text)
        total = content["total"]
        return Progress(
            step=_text(content["step"]),
            done=int(content["done"]),
            total=None if total is None else int(total),
            unit=_text(content["unit"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _text(content: object) -> str:
    text = str(content)
    # A lone surrogate can be parsed but not encoded again.
    text.encode()
    return text
