"""The API in its own process, and clients of its live events."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from testkit.service_process import ServiceProcess as ApiProcess
from testkit.service_process import running_service

__all__ = ["ApiProcess", "Event", "EventStream", "api_process", "calling", "follow", "running_api"]

PATIENCE_SECONDS = 90


@asynccontextmanager
async def api_process(environment: Mapping[str, str]) -> AsyncIterator[str]:
    """Run an API process with these settings, and yield its address."""
    async with running_api(environment) as api:
        yield api.base_url


def running_api(
    environment: Mapping[str, str], *, port: int | None = None
) -> AbstractAsyncContextManager[ApiProcess]:
    """Run an API process with these settings."""
    return running_service("api", environment, port=port)


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    name: str
    data: Any
    id: str | None


class EventStream:
    """An open event stream; comments and bare `retry` lines are skipped, as browsers do."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Event:
        event = await self._next()
        assert event is not None, "the stream has ended"
        return event

    async def next_news(self) -> Event:
        """Return the next event that is not a heartbeat, which may come at any time."""
        while (event := await self.next()).name == "heartbeat":
            pass
        return event

    async def next_named(self, name: str) -> Event:
        while (event := await self.next()).name != name:
            pass
        return event

    async def until_end(self) -> list[Event]:
        """Return all events up to a clean end."""
        events = []
        while (event := await self._next()) is not None:
            events.append(event)
        return events

    async def _next(self) -> Event | None:
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in self._lines:
                name, separator, value = line.partition(": ")
                if separator and name:
                    fields[name] = value
                elif not line and "event" in fields:
                    return Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
        return None


@asynccontextmanager
async def follow(client: httpx.AsyncClient, last_event_id: str | None = None) -> AsyncIterator[EventStream]:
    """Open the event stream of the client's user."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    async with client.stream("GET", "/api/v1/events", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield EventStream(response)


@asynccontextmanager
async def calling(base_url: str, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client with unlimited connections and a timeout long enough for streams."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=base_url, headers=headers, limits=limits, timeout=PATIENCE_SECONDS
    ) as client:
        yield client
