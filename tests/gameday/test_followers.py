"""Followers keep their state across broken connections; echoes are compared with what was sent."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web

from gameday.checks.findings import Findings
from gameday.people.echoes import EchoClient
from gameday.people.followers import Follower
from testkit.waiting import until
from tests.gameday.front_doors import FrontDoor, RequestHandler, open_front_door


def event(kind: str, event_id: str | None, data: object) -> str:
    return f"event: {kind}\n" + (f"id: {event_id}\n" if event_id else "") + f"data: {json.dumps(data)}\n\n"


def workspace(name: str, version: int, phase: str = "STANDBY") -> dict[str, object]:
    return {"id": name, "version": version, "phase": phase}


def send_streams(*streams: str) -> RequestHandler:
    """Send one stream per request and cut it at its end; the last one stays open."""
    remaining = list(streams)

    async def send(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        text = remaining.pop(0).encode()
        # In small chunks, as a network may deliver them.
        for start in range(0, len(text), 50):
            await response.write(text[start : start + 50])
        if not remaining:
            await asyncio.Event().wait()
        assert request.transport is not None
        request.transport.abort()
        return response

    return send


@asynccontextmanager
async def following(*streams: str) -> AsyncIterator[tuple[Follower, FrontDoor, Findings]]:
    findings, stop = Findings(lambda: 0.0), asyncio.Event()
    async with open_front_door(send_streams(*streams)) as door:
        follower = Follower(door.url, "token", findings, Counter[str]())
        task = asyncio.create_task(follower.run(stop))
        try:
            yield follower, door, findings
        finally:
            stop.set()
            await task


async def until_received(follower: Follower, versions: dict[str, int]) -> None:
    async def received() -> bool:
        return {name: each["version"] for name, each in follower.workspaces().items()} == versions

    await until(received, f"the follower received {versions}")


async def test_a_follower_keeps_the_latest_state() -> None:
    stream = (
        event("snapshot", "1", {"workspaces": [workspace("a", 1), workspace("b", 1), workspace("c", 1)]})
        + event("workspace_updated", "2", workspace("a", 2, "RUNNING"))
        + event("heartbeat", None, {})
        + event("workspace_progress", None, {"id": "b"})
        + event("workspace_deleted", "3", {"id": "c"})
    )
    async with following(stream) as (follower, _, findings):
        await until_received(follower, {"a": 2, "b": 1})
        assert follower.workspaces()["a"]["phase"] == "RUNNING"
    assert findings.violations == []


async def test_a_follower_reconnects_with_the_id_of_the_last_complete_event() -> None:
    first = event("snapshot", "1", {"workspaces": [workspace("a", 1)]})
    cut = event("workspace_updated", "2", workspace("a", 2))[:-1]
    second = event("heartbeat", None, {}) + event("workspace_updated", "2", workspace("a", 2))
    async with following(first + cut, second) as (follower, door, _):
        await until_received(follower, {"a": 2})
        assert [each.headers.get("Last-Event-ID") for each in door.requests] == [None, "1"]


async def test_a_new_snapshot_replaces_the_state() -> None:
    first = event("snapshot", "1", {"workspaces": [workspace("a", 1), workspace("b", 1)]})
    second = event("snapshot", "2", {"workspaces": [workspace("b", 5)]})
    async with following(first, second) as (follower, _, _findings):
        await until_received(follower, {"b": 5})


async def test_an_update_with_an_older_version_is_a_violation() -> None:
    stream = event("snapshot", "1", {"workspaces": [workspace("a", 3)]}) + event(
        "workspace_updated", "2", workspace("a", 2)
    )
    async with following(stream) as (follower, _, findings):
        await until_received(follower, {"a": 2})
    assert [each.words for each in findings.violations] == ["received version 2 after 3"]


@asynccontextmanager
async def echoing(
    url: str, running: Callable[[], Sequence[str]]
) -> AsyncIterator[tuple[Counter[str], Findings]]:
    tally, findings, stop = Counter[str](), Findings(lambda: 0.0), asyncio.Event()
    client = EchoClient(url, "token", running, findings, tally, Random(3))  # noqa: S311
    task = asyncio.create_task(client.run(stop))
    try:
        yield tally, findings
    finally:
        stop.set()
        await task


async def until_counted(tally: Counter[str], what: str, times: int) -> None:
    async def counted() -> bool:
        return tally[what] >= times

    await until(counted, f"{times} times {what}")


async def test_a_broken_socket_is_reopened() -> None:
    async def echo_once(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(await socket.receive_str())
        assert request.transport is not None
        request.transport.abort()
        return socket

    async with open_front_door(echo_once) as door, echoing(door.url, lambda: ["a"]) as (tally, findings):
        await until_counted(tally, "echoes: connected", 2)
    assert tally["echoes: received"] >= 1
    assert tally["echoes: disconnected"] >= 1
    assert findings.violations == []


async def test_a_wrong_echo_is_a_violation() -> None:
    async def respond_wrongly(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for _ in socket:
            await socket.send_str("something else")
        return socket

    async with (
        open_front_door(respond_wrongly) as door,
        echoing(door.url, lambda: ["a"]) as (tally, findings),
    ):
        await until_counted(tally, "echoes: received", 1)
    assert len(findings.violations) == 1


async def test_echo_clients_do_not_connect_to_stopped_workspaces() -> None:
    polled = asyncio.Event()

    def running() -> Sequence[str]:
        polled.set()
        return []

    async def unexpected(request: web.Request) -> web.StreamResponse:
        raise AssertionError("unexpected request")

    async with open_front_door(unexpected) as door, echoing(door.url, running):
        await polled.wait()
    assert door.requests == []
