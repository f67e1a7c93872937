"""What happens to a workspace, as it happens: live events, across connections that are lost."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from cli.client import Client, silence
from cli.errors import ExitCode, Failed

# A server that restarts is back within this time; otherwise somebody should know.
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any


@dataclass(frozen=True)
class Seen:
    """The workspace as it is now; None once it is gone."""

    workspace: dict[str, Any] | None


@dataclass(frozen=True)
class Progress:
    """How far the step under way is."""

    step: str
    done: int
    total: int | None
    unit: str


Update = Seen | Progress


def follow(client: Client, workspace_id: str) -> Iterator[Update]:
    """The workspace, and again whenever it changes, until it is gone."""
    for event in follow_events(client):
        if event.name == "snapshot":
            mine = [each for each in event.data["workspaces"] if each["id"] == workspace_id]
            if not mine:
                # Gone, or somebody else's, of whom there are no events for an administrator.
                yield from _ask_again_and_again(client, workspace_id)
                return
            yield Seen(mine[0])
        elif event.data.get("id") == workspace_id:
            if (update := _update(event)) is not None:
                yield update
            if event.name == "workspace_deleted":
                return


def follow_events(client: Client) -> Iterator[Event]:
    """All of mine; each connection begins with a snapshot, so nothing is missed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with client.streaming("/events") as response:
                for event in parse_events(response.iter_lines()):
                    yield event
                    deadline = time.monotonic() + PATIENCE_SECONDS
        except (httpx.TransportError, Failed) as error:
            _give_up_unless_it_may_come_back(client, error, deadline)
        time.sleep(PAUSE_SECONDS)


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """Server-sent events as a browser reads them; comments and bare fields say nothing."""
    name, data = "", list[str]()
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif not line:
            if name and data:
                yield Event(name, json.loads("\n".join(data)))
            name, data = "", []


def _update(event: Event) -> Update | None:
    match event.name:
        case "workspace_updated":
            return Seen(event.data)
        case "workspace_deleted":
            return Seen(None)
        case "workspace_progress":
            data = event.data
            # Between two steps there is none.
            return Progress(data["step"], data["done"], data["total"], data["unit"]) if data["step"] else None
    return None


def _ask_again_and_again(client: Client, workspace_id: str) -> Iterator[Update]:
    while True:
        try:
            yield Seen(client.get(f"/workspaces/{workspace_id}"))
        except Failed as failure:
            if failure.code is not ExitCode.NOT_FOUND:
                raise
            yield Seen(None)
            return
        time.sleep(PAUSE_SECONDS)


def _give_up_unless_it_may_come_back(client: Client, error: Exception, deadline: float) -> None:
    if isinstance(error, Failed):
        if error.code is not ExitCode.UNAVAILABLE or time.monotonic() > deadline:
            raise error
    elif time.monotonic() > deadline:
        raise silence(client.address, error) from error
