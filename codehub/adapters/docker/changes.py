"""Follows the engine's events, so that an exited or removed container is noticed before the next sweep."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import error_text
from codehub.backoff import delay_after
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import parse_container_name, parse_volume_name

Event = dict[str, Any]

FILTERS = {"type": ["container", "volume"], "event": ["die", "destroy"]}
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 15.0
_log = logging.getLogger(__name__)


class DockerChanges:
    """One stream of events per process. The sweep finds what happens while the stream is down."""

    def __init__(self, engine: Docker) -> None:
        self._engine = engine

    async def follow(self) -> AsyncIterator[WorkspaceId]:
        failures = 0
        while True:
            try:
                async for event in self._events():
                    failures = 0
                    if (workspace_id := _workspace_of(event)) is not None:
                        yield workspace_id
            except (DockerError, aiohttp.ClientError, TimeoutError, OSError) as error:
                if failures == 0:
                    _log.warning(
                        "No events from Docker (%s); changes wait for the next sweep", error_text(error)
                    )
            failures += 1
            await asyncio.sleep(delay_after(failures, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS))

    async def _events(self) -> AsyncIterator[Event]:
        subscriber = self._engine.events.subscribe(create_task=False)
        running = asyncio.create_task(self._engine.events.run(filters=json.dumps(FILTERS)))
        try:
            while (event := await subscriber.get()) is not None:
                yield event
            # The stream has ended: raise the error that ended it.
            await running
        finally:
            running.cancel()
            await asyncio.wait([running])


def _workspace_of(event: Event) -> WorkspaceId | None:
    """Return the workspace of an event, or None for a storage job: its caller watches it."""
    actor = event["Actor"]
    if event["Type"] == "volume":
        return parse_volume_name(actor["ID"])
    return parse_container_name(actor["Attributes"].get("name", ""))
