"""Followers keep what they were told through every cut; echoes are compared with what was sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web

from gameday.checks.findings import Findings
from gameday.people.echoes import EchoClient
from gameday.people.followers import Follower
from gameday.people.tally import Tally
from testkit.waiting import until
from tests.gameday.front_doors import Answering, FrontDoor, open_front_door


def event(kind: str, mark: str | None, data: object) -> str:
    return f"event: {kind}\n" + (f"id: {mark}\n" if mark else "") + f"data: {json.dumps(data)}\n\n"


def workspace(name: str, version: int, phase: str = "STANDBY") -> dict[str, object]:
    return {"id": name, "version": version, "phase": phase}


def telling(*streams: str) -> Answering:
    """One after the other, each cut where its text ends; the last one stays open."""
    waiting = list(streams)

    async def tell(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        text = waiting.pop(0).encode()
        # In pieces, as the network may bring them.
        for start in range(0, len(text), 50):
            await response.write(text[start : start + 50])
        if not waiting:
            await asyncio.Event().wait()
        assert request.transport is not None
        request.transport.abort()
        return response

    return tell


@asynccontextmanager
async def following(*streams: str) -> AsyncIterator[tuple[Follower, FrontDoor, Findings]]:
    findings, stop = Findings(lambda: 0.0), asyncio.Event()
    async with open_front_door(telling(*streams)) as door:
        follower = Follower(door.url, "token", findings, Tally())
        task = asyncio.create_task(follower.follow(stop))
        try:
            yield follower, door, findings
        finally:
            stop.set()
            await task


async def until_told(follower: Follower, versions: dict[str, int]) -> None:
    async def told() -> bool:
        return {name: each["version"] for name, each in follower.state().items()} == versions

    await until(told, f"the follower was told {versions}")


async def test_a_follower_knows_what_it_was_told_last() -> None:
    stream = (
        event("snapshot", "1", {"workspaces": [workspace("a", 1), workspace("b", 1), workspace("c", 1)]})
        + event("workspace_updated", "2", workspace("a", 2, "RUNNING"))
        + event("heartbeat", None, {})
        + event("workspace_progress", None, {"id": "b"})
        + event("workspace_deleted", "3", {"id": "c"})
    )
    async with following(stream) as (follower, _, findings):
        await until_told(follower, {"a": 2, "b": 1})
        assert follower.state()["a"]["phase"] == "RUNNING"
    assert findings.violations == []


async def test_a_follower_comes_back_with_the_mark_of_the_last_whole_event() -> None:
    first = event("snapshot", "1", {"workspaces": [workspace("a", 1)]})
    cut = event("workspace_updated", "2", workspace("a", 2))[:-1]
    second = event("heartbeat", None, {}) + event("workspace_updated", "2", workspace("a", 2))
    async with following(first + cut, second) as (follower, door, _):
        await until_told(follower, {"a": 2})
        assert [each.headers.get("Last-Event-ID") for each in door.requests] == [None, "1"]


async def test_a_new_snapshot_replaces_what_was_known() -> None:
    first = event("snapshot", "1", {"workspaces": [workspace("a", 1), workspace("b", 1)]})
    second = event("snapshot", "2", {"workspaces": [workspace("b", 5)]})
    async with following(first, second) as (follower, _, _findings):
        await until_told(follower, {"b": 5})


async def test_an_update_that_goes_back_in_time_is_a_violation() -> None:
    stream = event("snapshot", "1", {"workspaces": [workspace("a", 3)]}) + event(
        "workspace_updated", "2", workspace("a", 2)
    )
    async with following(stream) as (follower, _, findings):
        await until_told(follower, {"a": 2})
    assert [each.words for each in findings.violations] == ["told version 2 after 3"]


@asynccontextmanager
async def talking(url: str, running: Callable[[], Sequence[str]]) -> AsyncIterator[tuple[Tally, Findings]]:
    tally, findings, stop = Tally(), Findings(lambda: 0.0), asyncio.Event()
    client = EchoClient(url, "token", running, findings, tally, Random(3))  # noqa: S311
    task = asyncio.create_task(client.talk(stop))
    try:
        yield tally, findings
    finally:
        stop.set()
        await task


async def until_counted(tally: Tally, what: str, times: int) -> None:
    async def counted() -> bool:
        return tally[what] >= times

    await until(counted, f"{times} times {what}")


async def test_a_cut_socket_is_opened_again() -> None:
    async def echo_once(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(await socket.receive_str())
        assert request.transport is not None
        request.transport.abort()
        return socket

    async with open_front_door(echo_once) as door, talking(door.url, lambda: ["a"]) as (tally, findings):
        await until_counted(tally, "echoes: sockets", 2)
    assert tally["echoes: heard"] >= 1
    assert tally["echoes: sockets cut"] >= 1
    assert findings.violations == []


async def test_a_wrong_echo_is_a_violation() -> None:
    async def babble(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for _ in socket:
            await socket.send_str("something else")
        return socket

    async with open_front_door(babble) as door, talking(door.url, lambda: ["a"]) as (tally, findings):
        await until_counted(tally, "echoes: heard", 1)
    assert len(findings.violations) == 1


async def test_nobody_talks_to_what_does_not_run() -> None:
    asked = asyncio.Event()

    def running() -> Sequence[str]:
        asked.set()
        return []

    async def unexpected(request: web.Request) -> web.StreamResponse:
        raise AssertionError("somebody came")

    async with open_front_door(unexpected) as door, talking(door.url, running):
        await asked.wait()
    assert door.requests == []
