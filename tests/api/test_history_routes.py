"""History of a workspace over the API: operations, audit trail, archives, instance log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest
from starlette.types import ASGIApp, Message
from temporalio.client import Client

from codehub.db.events import EventKind
from codehub.db.models import Archive
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import ErrorReason, Operation
from testkit.fake_world import IMAGE, FakeInstance, FakeWorld
from testkit.waiting import DEADLINE_SECONDS, until
from tests.api.harness import ApiHarness, Person, open_harness, running_worker
from tests.api.workspace_rows import LONG_AGO, set_columns, write_event

UI = "http://127.0.0.1:8233"


@pytest.fixture
async def harness(api_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    async with open_harness({**api_environment, "CODEHUB_TEMPORAL_UI_URL": UI}) as opened:
        yield opened.with_cheap_passwords()


async def read(person: Person, workspace_id: str, what: str, **query: object) -> dict[str, Any]:
    response = await person.client.get(f"{person.workspaces}/{workspace_id}/{what}", params=query)  # type: ignore[arg-type]
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


async def test_operations_have_a_duration_and_a_link_to_temporal(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    database = harness.context.database
    ended = LONG_AGO + timedelta(seconds=2.5)
    await write_event(database, workspace_id, EventKind.OPERATION_CLAIMED, LONG_AGO, Operation.PROVISIONING)
    await write_event(database, workspace_id, EventKind.OPERATION_COMPLETED, ended, Operation.PROVISIONING)
    await write_event(database, workspace_id, EventKind.OPERATION_CLAIMED, ended, Operation.STARTING)
    running, done = (await read(ada, workspace_id, "operations"))["items"]
    assert (done["operation"], done["result"], done["duration_seconds"]) == ("PROVISIONING", "COMPLETED", 2.5)
    assert (running["operation"], running["result"], running["ended_at"]) == ("STARTING", "RUNNING", None)
    assert isinstance(running["duration_seconds"], float)
    link = unquote(str(done["temporal_url"]))
    assert link.startswith(f"{UI}/namespaces/default/workflows?query=")
    assert f'WorkspaceId = "{workspace_id}" AND Operation = "PROVISIONING"' in link
    assert 'StartTime <= "2026-01-01T00:00:02.500+00:00"' in link


async def test_failed_operations_have_a_reason(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    for kind in (EventKind.OPERATION_CLAIMED, EventKind.ATTEMPT_FAILED, EventKind.OPERATION_FAILED):
        failed = kind is not EventKind.OPERATION_CLAIMED
        await write_event(
            harness.context.database,
            workspace_id,
            kind,
            LONG_AGO,
            Operation.STARTING,
            error_reason=ErrorReason.ACTION_FAILED if failed else None,
            detail={"message": "The IDE did not start."} if failed else None,
        )
    (item,) = (await read(ada, workspace_id, "operations"))["items"]
    assert (item["result"], item["error_reason"]) == ("FAILED", "ActionFailed")
    assert item["message"] == "The IDE did not start."


async def test_the_link_to_temporal_finds_the_operation(harness: ApiHarness, temporal_client: Client) -> None:
    async with running_worker(harness):
        ada = await harness.person()
        workspace_id = (await ada.create())["id"]

        async def done() -> bool:
            items = (await read(ada, workspace_id, "operations"))["items"]
            return [item["result"] for item in items] == ["COMPLETED"]

        await until(done, "the volume is provisioned")
        (item,) = (await read(ada, workspace_id, "operations"))["items"]
        query = unquote(str(item["temporal_url"]).partition("?query=")[2])

        async def found() -> bool:
            return [each.workflow_type async for each in temporal_client.list_workflows(query)] == [
                "Provisioning"
            ]

        await until(found, f"one workflow for {query}")


async def test_pages_of_history_contain_every_entry_once(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    for number in range(7):
        at = LONG_AGO + timedelta(seconds=number)
        for kind in (EventKind.OPERATION_CLAIMED, EventKind.OPERATION_COMPLETED):
            await write_event(harness.context.database, workspace_id, kind, at, Operation.STARTING)
    for what, count in (("operations", 7), ("events", 15)):
        seen, query = [], {"limit": "3"}
        while True:
            page = await read(ada, workspace_id, what, **query)
            seen += [item.get("id") or item["started_at"] for item in page["items"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = str(page["next_cursor"])
        assert len(seen) == len(set(seen)) == count
        assert seen == sorted(seen, reverse=True)
        response = await ada.client.get(f"{ada.workspaces}/{workspace_id}/{what}", params={"cursor": "x"})
        assert response.status_code == 400


async def test_the_audit_trail_says_who_requested_what(harness: ApiHarness) -> None:
    ada, root = await harness.person("ada"), await harness.person("root", admin=True)
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}"
    await root.client.patch(path, json={"memo": "a secret of hers", "desired_state": "ARCHIVED"})
    items = (await read(ada, workspace_id, "events"))["items"]
    assert [(item["kind"], item["actor"]) for item in items] == [
        ("state_requested", "root"),
        ("metadata_changed", "root"),
        ("created", "ada"),
    ]
    assert items[0]["detail"] == {"from": "STANDBY", "to": "ARCHIVED"}
    assert "secret" not in str(items)


async def test_archives_say_which_one_is_current(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    async with harness.context.database.transaction() as session:
        for number, removed_at in ((1, LONG_AGO), (2, None)):
            session.add(
                Archive(
                    key=f"archives/{number}",
                    workspace_id=workspace_id,
                    archive_op_id=uuid4(),
                    size_bytes=number,
                    sha256="0" * 64,
                    created_at=LONG_AGO + timedelta(days=number),
                    deleted_at=removed_at,
                )
            )
    await set_columns(harness.context.database, workspace_id, archive_key="archives/2")
    newest, older = (await read(ada, workspace_id, "archives"))["items"]
    assert (newest["size_bytes"], newest["current"], newest["removed_at"]) == (2, True, None)
    assert (older["size_bytes"], older["current"]) == (1, False)
    assert older["removed_at"] is not None
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()["archive"]
    assert shown["size_bytes"] == 2


async def test_the_last_lines_of_a_log_are_returned(harness: ApiHarness) -> None:
    world = FakeWorld()
    ada = await harness.with_fake_instances(world).person()
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}/logs"
    assert (await ada.client.get(path)).text == ""
    lines = [b"%d\n" % number for number in range(500)]
    world.instances[WorkspaceId(workspace_id)] = FakeInstance(IMAGE, log=lines)
    response = await ada.client.get(path, params={"tail": 3})
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text == "497\n498\n499\n"
    assert len((await ada.client.get(path)).text.splitlines()) == 200
    assert (await ada.client.get(path, params={"tail": 0})).text == ""
    for wrong in (-1, 10_001, "many"):
        assert (await ada.client.get(path, params={"tail": wrong})).status_code == 400


async def test_following_a_log_sends_lines_as_they_come_until_the_end(harness: ApiHarness) -> None:
    world = FakeWorld()
    faked = harness.with_fake_instances(world)
    ada = await faked.person()
    workspace_id = (await ada.create())["id"]
    instance = FakeInstance(IMAGE, log=[b"old\n", b"first\n"])
    world.instances[WorkspaceId(workspace_id)] = instance
    request = ada.client.build_request(
        "GET", f"{ada.workspaces}/{workspace_id}/logs", params={"tail": 1, "follow": "true"}
    )
    headers = [(name.lower(), value) for name, value in request.headers.raw]
    async with streaming(faked.app, request.url.path, request.url.query, headers) as chunks:
        assert await chunks.get() == b"first\n"
        instance.log.append(b"second\n")
        assert await chunks.get() == b"second\n"
        instance.alive = False
        assert await chunks.get() == b""


@asynccontextmanager
async def streaming(
    app: ASGIApp, path: str, query: bytes, headers: list[tuple[bytes, bytes]]
) -> AsyncIterator[asyncio.Queue[bytes]]:
    """Yield the chunks of a response as they are sent; an empty one is the end."""
    chunks: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive() -> Message:
        # The caller never disconnects.
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        elif message["body"] or not message.get("more_body"):
            chunks.put_nowait(message["body"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
    }
    task = asyncio.ensure_future(app(scope, receive, send))
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield chunks
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
