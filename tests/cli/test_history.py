"""What its editor printed, and what was asked for and done."""

import json

from cli.errors import ExitCode
from codehub.adapters.local.root import LocalRoot
from codehub.db.events import EventKind
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation
from codehub.providers import local_root_of
from tests.api.workspace_rows import LONG_AGO, set_columns, write_event
from tests.cli.harness import Somebody


async def with_history(somebody: Somebody) -> str:
    workspace_id = await somebody.create("notes")
    await write_event(somebody.harness.database, workspace_id, EventKind.CREATED, LONG_AGO)
    return workspace_id


async def test_logs_are_printed_as_they_are(ann: Somebody) -> None:
    workspace_id = await ann.create("notes")
    directory = LocalRoot(local_root_of(ann.harness.harness.settings)).instance(WorkspaceId(workspace_id))
    directory.mkdir(parents=True)
    (directory / "output.log").write_text("one\ntwo [bold]\nthree\n")
    assert (await ann.run("ws", "logs", "notes")).stdout == "one\ntwo [bold]\nthree\n"
    assert (await ann.run("ws", "logs", "notes", "--tail", "1")).stdout == "three\n"
    followed = await ann.run("ws", "logs", "notes", "-f", "--tail", "1")
    assert (followed.exit_code, followed.stdout) == (0, "three\n"), "it ends with its editor"


async def test_logs_of_what_never_ran_are_empty(ann: Somebody) -> None:
    await ann.create("notes")
    result = await ann.run("ws", "logs", "notes")
    assert (result.exit_code, result.stdout) == (0, "")


async def test_events_are_told_oldest_first(ann: Somebody) -> None:
    workspace_id = await with_history(ann)
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


async def test_events_for_scripts_are_a_document_per_line(ann: Somebody) -> None:
    workspace_id = await with_history(ann)
    lines = (await ann.run("ws", "events", "notes", "--json", "--tail", "1")).stdout.splitlines()
    answer = await ann.person.client.get(f"{ann.person.workspaces}/{workspace_id}/events")
    assert [json.loads(line) for line in lines] == answer.json()["items"]


async def test_on_a_terminal_events_go_on(ann: Somebody) -> None:
    workspace_id = await with_history(ann)
    with ann.terminal("ws", "events", "notes") as terminal:
        await terminal.shows("created")
        await write_event(ann.harness.database, workspace_id, EventKind.ERROR_FOUND, LONG_AGO)
        await set_columns(ann.harness.database, workspace_id, description="changed, so that it is looked at")
        await terminal.shows("noticed a problem")
        terminal.interrupt()
        assert await terminal.ended() == ExitCode.INTERRUPTED
    assert terminal.text.count("noticed a problem") == 1
    assert "Traceback" not in terminal.text
