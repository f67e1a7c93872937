"""Live updates of a workspace, which reconnect after a lost connection."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from cli.client import Client, unreachable_error
from cli.errors import CommandError, ExitCode

# A restarting server is back within this time.
RECONNECT_SECONDS = 60.0
RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any


@dataclass(frozen=True)
class Snapshot:
    """The current workspace, or None if it is deleted."""

    workspace: dict[str, Any] | None


@dataclass(frozen=True)
class Progress:
    """The progress of the current step."""

    step: str
    done: int
    total: int | None
    unit: str


Update = Snapshot | Progress


def follow(client: Client, workspace_id: str) -> Iterator[Update]:
    """Yield the workspace now and after every change, until it is deleted."""
    for event in follow_events(client):
        if event.name == "snapshot":
            found = [each for each in event.data["workspaces"] if each["id"] == workspace_id]
            if not found:
                # It is deleted, or belongs to another user: administrators get no events of others.
                yield from _poll(client, workspace_id)
                return
            yield Snapshot(found[0])
        elif event.data.get("id") == workspace_id:
            if (update := _parse_update(event)) is not None:
                yield update
            if event.name == "workspace_deleted":
                return


def follow_events(client: Client) -> Iterator[Event]:
    """Yield the caller's events; every connection begins with a snapshot, so nothing is missed."""
    deadline = time.monotonic() + RECONNECT_SECONDS
    while True:
        try:
            with client.stream("/events") as response:
                for event in parse_events(response.iter_lines()):
                    yield event
                    deadline = time.monotonic() + RECONNECT_SECONDS
        except (httpx.TransportError, CommandError) as error:
            _raise_unless_temporary(client, error, deadline)
        time.sleep(RETRY_SECONDS)


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """Parse server-sent events like a browser; ignore comments and fields without a value."""
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


def _parse_update(event: Event) -> Update | None:
    match event.name:
        case "workspace_updated":
            return Snapshot(event.data)
        case "workspace_deleted":
            return Snapshot(None)
        case "workspace_progress":
            data = event.data
            # Between two steps there is none.
            return Progress(data["step"], data["done"], data["total"], data["unit"]) if data["step"] else None
    return None


def _poll(client: Client, workspace_id: str) -> Iterator[Update]:
    while True:
        try:
            yield Snapshot(client.get(f"/workspaces/{workspace_id}"))
        except CommandError as error:
            if error.code is not ExitCode.NOT_FOUND:
                raise
            yield Snapshot(None)
            return
        time.sleep(RETRY_SECONDS)


def _raise_unless_temporary(client: Client, error: Exception, deadline: float) -> None:
    """Raise the error if it is permanent, or if CodeHub has been unavailable for too long."""
    if isinstance(error, CommandError):
        if error.code is not ExitCode.UNAVAILABLE or time.monotonic() > deadline:
            raise error
    elif time.monotonic() > deadline:
        raise unreachable_error(client.address, error) from error
