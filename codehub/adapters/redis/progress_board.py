"""How far steps are, as keys that expire: what nobody posts any more is soon not shown any more."""

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
# Whoever waits for a courtesy waits in vain after this.
ANSWER_SECONDS = 1.0


def progress_key(workspace_id: WorkspaceId) -> str:
    return f"codehub:progress:{workspace_id}"


class RedisProgressBoard:
    """A `ProgressBoard`."""

    def __init__(self, client: Redis, *, lifetime_seconds: float = LIFETIME_SECONDS) -> None:
        self._client = client
        self._lifetime_milliseconds = round(lifetime_seconds * 1000)

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        content = json.dumps(asdict(progress))
        await _ask(self._client.set(progress_key(workspace_id), content, px=self._lifetime_milliseconds))

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        ids = list(workspace_ids)
        contents = await _ask(self._client.mget([progress_key(each) for each in ids])) if ids else []
        if contents is None:
            return None
        pairs = zip(ids, contents, strict=True)
        found = {each: _parse(content) for each, content in pairs if content is not None}
        return {each: progress for each, progress in found.items() if progress is not None}

    async def clear(self, workspace_id: WorkspaceId) -> None:
        await _ask(self._client.delete(progress_key(workspace_id)))


async def _ask(answer: Awaitable[T]) -> T | None:
    """None also if Redis does not answer, or not soon."""
    try:
        with translate_errors():
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
    # What somebody else wrote there may be no text at all.
    except (Transient, UnicodeDecodeError) as error:
        log.debug("progress is not shown: %s", error)
        return None


def _parse(text: str | bytes) -> Progress | None:
    """What is there, which anybody who can use Redis may have written."""
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
    # Half of a character can be read but not sent on.
    text.encode()
    return text
