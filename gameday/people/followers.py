"""A user who follows live updates: reconnects forever and keeps the latest state."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from gameday.checks.findings import Findings, Invariant
from gameday.people.client import API

# A heartbeat comes every 30 s: a stream without one is dead, whatever TCP says.
SILENCE_SECONDS = 40.0
CONNECT_SECONDS = 10.0
RECONNECT_SECONDS = 0.5
OK = 200

Workspace = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    kind: str
    event_id: str | None
    data: str


async def read_events(lines: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """Parse events as a browser does: one without its final empty line does not count."""
    fields: dict[str, list[str]] = {}
    async for line in lines:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
            continue
        if "data" in fields:
            event_id = fields.get("id", [None])[-1]
            yield Event(fields.get("event", ["message"])[-1], event_id, "\n".join(fields["data"]))
        fields = {}


class Follower:
    """The live stream of one user."""

    def __init__(self, url: str, token: str, findings: Findings, tally: Counter[str]) -> None:
        self._address = f"{url}{API}/events"
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._findings = findings
        self._tally = tally
        self._last_event_id: str | None = None
        self._workspaces: dict[str, Workspace] = {}

    def workspaces(self) -> dict[str, Workspace]:
        """Return the workspaces as last received, by id."""
        return dict(self._workspaces)

    async def run(self, until: asyncio.Event) -> None:
        following = asyncio.create_task(self._follow())
        try:
            await until.wait()
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    async def _follow(self) -> None:
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20) as session:
            while True:
                with suppress(aiohttp.ClientError, TimeoutError, OSError):
                    await self._follow_once(session)
                self._tally["streams: ended"] += 1
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _follow_once(self, session: aiohttp.ClientSession) -> None:
        last = {"Last-Event-ID": self._last_event_id} if self._last_event_id else {}
        async with session.get(self._address, headers={**self._authorization, **last}) as response:
            if response.status != OK:
                return
            self._tally["streams: opened"] += 1
            async for event in read_events(_lines(response.content)):
                self._tally[f"streams: {event.kind}"] += 1
                self._apply(event)

    def _apply(self, event: Event) -> None:
        data = json.loads(event.data)
        if event.kind == "snapshot":
            self._workspaces = {each["id"]: each for each in data["workspaces"]}
        elif event.kind == "workspace_updated":
            self._check_order(data)
            self._workspaces[data["id"]] = data
        elif event.kind == "workspace_deleted":
            self._workspaces.pop(data["id"], None)
        self._last_event_id = event.event_id or self._last_event_id

    def _check_order(self, workspace: Workspace) -> None:
        known = self._workspaces.get(workspace["id"], workspace)
        words = f"received version {workspace['version']} after {known['version']}"
        problems = [words] if workspace["version"] < known["version"] else []
        self._findings.record(Invariant.FOLLOWERS, problems, workspace["id"])


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Split into lines of any length: a snapshot is one line."""
    rest = b""
    async for chunk in stream.iter_any():
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield line
