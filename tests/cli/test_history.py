"""The output of the IDE, and the audit trail."""

import json

from cli.errors import ExitCode
from codehub.adapters.local.root import LocalRoot
from codehub.db.events import EventKind
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation
from codehub.providers import local_root_of
from tests.api.workspace_rows import LONG_AGO, set_columns, write_event
from tests.cli.harness import CliUser


async def create_with_history(user: CliUser) -> str:
    workspace_id = await user.create("notes")
    await write_event(user.harness.database, workspace_id, EventKind.CREATED, LONG_AGO)
    return workspace_id


async def test_logs_are_printed_unchanged(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    directory = LocalRoot(local_root_of(ann.harness.harness.settings)).instance(WorkspaceId(workspace_id))
    directory.mkdir(parents=True)
    (directory / "output.log").write_text("one\ntwo [bold]\nthree\n")
    assert (await ann.run("ws", "logs", "notes")).stdout == "one\ntwo [bold]\nthree\n"
    assert (await ann.run("ws", "logs", "notes", "--tail", "1")).stdout == "three\n"
    followed = await ann.run("ws", "logs", "notes", "-f", "--tail", "1")
    assert (followed.exit_code, followed.stdout) == (0, "three\n"), "it ends with the IDE"


async def test_logs_cannot_command_the_terminal(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    directory = LocalRoot(local_root_of(ann.harness.harness.settings)).instance(WorkspaceId(workspace_id))
    directory.mkdir(parents=True)
    log = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b2J\u202eevil\r\nover\rwritten\n"
    (directory / "output.log").write_text(log, newline="")
    with ann.terminal("ws", "logs", "notes") as terminal:
        assert await terminal.wait() == 0
        assert terminal.raw == "red �evil\r\nover\r\nwritten\r\n"
    with ann.terminal("ws", "logs", "notes", "--raw") as terminal:
        assert await terminal.wait() == 0
        assert terminal.raw.startswith("\x1b]0;owned\x07\x1b[31mred")
    assert (await ann.run("ws", "logs", "notes")).stdout_bytes == log.encode(), "a file gets every byte"


async def test_logs_of_a_workspace_that_never_ran_are_empty(ann: CliUser) -> None:
    await ann.create("notes")
    result = await ann.run("ws", "logs", "notes")
    assert (result.exit_code, result.stdout) == (0, "")


async def test_events_are_printed_oldest_first(ann: CliUser) -> None:
    workspace_id = await create_with_history(ann)
    await write_event(
        ann.harness.database,
        workspace_id,
        EventKind.ATTEMPT_FAILED,
        LONG_AGO,
        Operation.STARTING,
        detail={"message": "no \x1b[2J luck"},
    )
    first, *_, last = (await ann.run("ws", "events", "notes")).stdout.splitlines()
    assert first.endswith("worker created it")
    assert "worker failed an attempt: Starting  no �[2J luck" in last


async def test_events_as_json_are_one_document_per_line(ann: CliUser) -> None:
    workspace_id = await create_with_history(ann)
    lines = (await ann.run("ws", "events", "notes", "--json", "--tail", "1")).stdout.splitlines()
    response = await ann.person.client.get(f"{ann.person.workspaces}/{workspace_id}/events")
    assert [json.loads(line) for line in lines] == response.json()["items"]


async def test_on_a_terminal_events_are_followed(ann: CliUser) -> None:
    workspace_id = await create_with_history(ann)
    with ann.terminal("ws", "events", "notes") as terminal:
        await terminal.shows("created")
        await write_event(ann.harness.database, workspace_id, EventKind.ERROR_FOUND, LONG_AGO)
        await set_columns(ann.harness.database, workspace_id, description="changed, to trigger an update")
        await terminal.shows("noticed a problem")
        terminal.interrupt()
        assert await terminal.wait() == ExitCode.INTERRUPTED
    assert terminal.text.count("noticed a problem") == 1
    assert "Traceback" not in terminal.text
