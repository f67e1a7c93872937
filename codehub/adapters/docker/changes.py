"""The engine's events: what ends or goes behind our back is looked at without waiting for the sweep."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import words_of
from codehub.backoff import delay_after
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import parse_container_name, parse_volume_name

Event = dict[str, Any]

FILTERS = {"type": ["container", "volume"], "event": ["die", "destroy"]}
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 15.0
_log = logging.getLogger(__name__)


class DockerChanges:
    """One stream per process; what happened while it was away, the sweep finds."""

    def __init__(self, engine: Docker) -> None:
        self._engine = engine

    async def follow(self) -> AsyncIterator[WorkspaceId]:
        failures = 0
        while True:
            try:
                async for event in self._events():
                    failures = 0
                    if (workspace_id := _concerned(event)) is not None:
                        yield workspace_id
            except (DockerError, aiohttp.ClientError, TimeoutError, OSError) as error:
                if failures == 0:
                    _log.warning("Docker tells no events (%s); the sweep goes on looking", words_of(error))
            failures += 1
            await asyncio.sleep(delay_after(failures, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS))

    async def _events(self) -> AsyncIterator[Event]:
        subscriber = self._engine.events.subscribe(create_task=False)
        running = asyncio.create_task(self._engine.events.run(filters=json.dumps(FILTERS)))
        try:
            while (event := await subscriber.get()) is not None:
                yield event
            # It has ended: raise what ended it.
            await running
        finally:
            running.cancel()
            await asyncio.wait([running])


def _concerned(event: Event) -> WorkspaceId | None:
    """Jobs come and go all the time, and their callers are watching them."""
    actor = event["Actor"]
    if event["Type"] == "volume":
        return parse_volume_name(actor["ID"])
    return parse_container_name(actor["Attributes"].get("name", ""))
