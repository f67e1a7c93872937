"""Somebody who follows their workspaces live: reconnects for ever, and remembers what was told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from gameday.checks.findings import Findings, Invariant
from gameday.people.requests import API
from gameday.people.tally import Tally

# A heartbeat comes every 30 s: a stream that is silent for longer is dead, whatever TCP says.
SILENCE_SECONDS = 40.0
CONNECT_SECONDS = 10.0
AGAIN_AFTER_SECONDS = 0.5
GOOD = 200

Workspace = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    kind: str
    mark: str | None
    data: str


async def read_events(lines: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """As a browser reads them: an event without its empty line at the end never was."""
    fields: dict[str, list[str]] = {}
    async for line in lines:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
            continue
        if "data" in fields:
            mark = fields.get("id", [None])[-1]
            yield Event(fields.get("event", ["message"])[-1], mark, "\n".join(fields["data"]))
        fields = {}


class Follower:
    """One live stream of one user."""

    def __init__(self, url: str, token: str, findings: Findings, tally: Tally) -> None:
        self._address = f"{url}{API}/events"
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._findings = findings
        self._tally = tally
        self._mark: str | None = None
        self._told: dict[str, Workspace] = {}

    def state(self) -> dict[str, Workspace]:
        """The workspaces as they were last told, by id."""
        return dict(self._told)

    async def follow(self, until: asyncio.Event) -> None:
        """Stay until told to stop."""
        following = asyncio.create_task(self._follow_for_ever())
        try:
            await until.wait()
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    async def _follow_for_ever(self) -> None:
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20) as session:
            while True:
                with suppress(aiohttp.ClientError, TimeoutError, OSError):
                    await self._follow_once(session)
                self._tally.add("streams: ended")
                await asyncio.sleep(AGAIN_AFTER_SECONDS)

    async def _follow_once(self, session: aiohttp.ClientSession) -> None:
        headers = {**self._authorization, **({"Last-Event-ID": self._mark} if self._mark else {})}
        async with session.get(self._address, headers=headers) as answer:
            if answer.status != GOOD:
                return
            self._tally.add("streams: opened")
            async for event in read_events(_lines(answer.content)):
                self._tally.add(f"streams: {event.kind}")
                self._take_in(event)

    def _take_in(self, event: Event) -> None:
        data = json.loads(event.data)
        if event.kind == "snapshot":
            self._told = {each["id"]: each for each in data["workspaces"]}
        elif event.kind == "workspace_updated":
            self._check_order(data)
            self._told[data["id"]] = data
        elif event.kind == "workspace_deleted":
            self._told.pop(data["id"], None)
        self._mark = event.mark or self._mark

    def _check_order(self, workspace: Workspace) -> None:
        known = self._told.get(workspace["id"], workspace)
        words = f"told version {workspace['version']} after {known['version']}"
        problems = [words] if workspace["version"] < known["version"] else []
        self._findings.note(Invariant.FOLLOWERS, problems, workspace["id"])


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length: a snapshot is one."""
    held = b""
    async for piece in stream.iter_any():
        *whole, held = (held + piece).split(b"\n")
        for line in whole:
            yield line
