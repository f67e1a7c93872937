"""Workspaces from the command line: list, create, find, show, open; errors say what to do."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.errors import ExitCode
from codehub.domain.conditions import Condition, Conditions, Reason, Status, conditions_to_json
from codehub.domain.states import Operation
from testkit.waiting import until
from tests.api.workspace_rows import begin_operation, fail, lose_data, set_columns
from tests.cli.harness import CliUser

RUNNING = {"phase": "RUNNING", "desired_state": "RUNNING"}
ARCHIVED = {"phase": "ARCHIVED", "desired_state": "ARCHIVED"}


async def test_an_empty_list_shows_the_next_step(ann: CliUser) -> None:
    result = await ann.run("ws", "ls")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "codehub ws create NAME" in result.stderr


async def test_the_list_shows_the_state_and_what_happens_next(ann: CliUser) -> None:
    await ann.create("[bold]compiler", **RUNNING)
    broken = await ann.create("broken")
    await fail(ann.harness.database, broken)
    [_, _, second, first] = (await ann.run("ws", "ls")).stdout.splitlines()
    assert first.split()[:2] == ["[bold]compiler", "Running"]
    assert "stops now unless used" in first
    assert second.split()[:2] == ["broken", "Failed"]
    assert "needs your decision" in second


async def test_the_list_as_json_is_the_document_of_the_api(ann: CliUser) -> None:
    for number in range(3):
        await ann.create(f"number {number}")
    listed = json.loads((await ann.run("ws", "ls", "--json")).stdout)
    assert listed == (await ann.person.client.get(ann.person.workspaces)).json()


async def test_the_list_is_filtered(ann: CliUser) -> None:
    await ann.create("one", **RUNNING)
    await ann.create("two", **ARCHIVED)
    assert "one" not in (await ann.run("ws", "ls", "--phase", "ARCHIVED")).stdout
    assert "two" not in (await ann.run("ws", "ls", "--search", "one")).stdout
    assert (await ann.run("ws", "ls", "--phase", "ASLEEP")).exit_code == ExitCode.USAGE


async def test_a_new_workspace_has_the_given_options(ann: CliUser) -> None:
    options = (
        "--no-start",
        "--stop-after",
        "10m",
        "--archive-after",
        "7d",
        "-d",
        "Mine",
        "--image",
        "jupyterlab",
    )
    result = await ann.run("ws", "create", "notes", *options, "--json")
    assert result.exit_code == 0, result.output
    created = json.loads(result.stdout)
    fields = (
        "name",
        "description",
        "image_ref",
        "standby_ttl_seconds",
        "archive_ttl_seconds",
        "desired_state",
    )
    assert [created[field] for field in fields] == ["notes", "Mine", "jupyterlab", 600, 604_800, "STANDBY"]


@pytest.mark.parametrize(
    "arguments", [("notes", "--stop-after", "soon"), ("notes", "--stop-after", "5s"), ("",)]
)
async def test_invalid_options_are_a_usage_error(ann: CliUser, arguments: tuple[str, ...]) -> None:
    result = await ann.run("ws", "create", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert "Traceback" not in result.output
    assert (await ann.person.client.get(ann.person.workspaces)).json()["items"] == []


async def test_an_ambiguous_name_lists_the_ids(ann: CliUser) -> None:
    ids = [await ann.create("twin"), await ann.create("twin")]
    result = await ann.run("ws", "show", "twin")
    assert result.exit_code == ExitCode.USAGE
    assert all(each in result.stderr for each in ids)
    shown = await ann.run("ws", "show", ids[0], "--json")
    assert json.loads(shown.stdout)["id"] == ids[0]


async def test_a_name_must_match_exactly(ann: CliUser) -> None:
    await ann.create("compiler")
    result = await ann.run("ws", "show", "compile")
    assert (result.exit_code, result.stderr.splitlines()) == (
        ExitCode.NOT_FOUND,
        [
            "There is no workspace named compile. Did you mean compiler?",
            "List them with: codehub ws ls",
        ],
    )


async def test_workspaces_of_other_users_are_refused(ann: CliUser, admin: CliUser) -> None:
    theirs = await admin.create("secret")
    assert (await ann.run("ws", "show", "secret")).exit_code == ExitCode.NOT_FOUND
    result = await ann.run("ws", "show", theirs)
    assert (result.exit_code, result.stderr) == (
        ExitCode.REFUSED,
        "This workspace belongs to another user.\n",
    )


async def test_the_limit_error_lists_the_running_workspaces(ann: CliUser) -> None:
    running = [await ann.create(name, **RUNNING) for name in ("one", "two")]
    result = await ann.run("ws", "create", "three")
    assert result.exit_code == ExitCode.LIMIT
    assert all(each in result.stderr for each in ("one (Running", "two (Running", *running))
    assert result.stderr.splitlines()[-1] == "Stop one with: codehub ws stop NAME"


async def test_an_operation_in_progress_is_not_interrupted(ann: CliUser) -> None:
    workspace_id = await ann.create("busy", **RUNNING)
    await begin_operation(ann.harness.database, workspace_id, Operation.STARTING)
    result = await ann.run("ws", "stop", "busy")
    assert result.exit_code == ExitCode.REFUSED
    assert "STARTING is in progress" in result.stderr
    assert "d ago" in result.stderr


async def test_stopping_an_archived_workspace_does_not_restore_it(ann: CliUser) -> None:
    workspace_id = await ann.create("old", **ARCHIVED)
    result = await ann.run("ws", "stop", "old")
    assert (result.exit_code, result.stdout) == (0, "old is archived, so it is not running.\n")
    assert (await ann.read(workspace_id))["desired_state"] == "ARCHIVED"


async def test_restoring_a_running_workspace_does_not_stop_it(ann: CliUser) -> None:
    workspace_id = await ann.create("live", **RUNNING)
    assert (await ann.run("ws", "restore", "live")).exit_code == 0
    assert (await ann.read(workspace_id))["desired_state"] == "RUNNING"


async def test_show_explains_an_error_and_the_options(ann: CliUser) -> None:
    await lose_data(
        ann.harness.database, await ann.create("my notes"), archive_key="archives/a/b/home.tar.zst"
    )
    output = " ".join((await ann.run("ws", "show", "my notes")).stdout.split())
    assert "Failed. Files are missing. It needs your decision." in output
    assert "Files are missing: The volume has disappeared." in output
    assert "The files are missing." in output
    assert "codehub ws recover 'my notes' --choice restore_archive: go back to an archive" in output
    assert "disk Its disk has disappeared, with the newest files." in output


async def test_show_says_what_happens_next(ann: CliUser) -> None:
    await ann.create("live", **RUNNING)
    output = (await ann.run("ws", "show", "live")).stdout
    assert "Running. It is ready to use." in output
    assert "it stops now unless used" in output


async def test_open_prints_the_address_and_opens_a_browser(ann: CliUser, tmp_path: Path) -> None:
    workspace_id = await ann.create("notes", **RUNNING)
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o700)
    with ann.terminal("ws", "open", "notes", BROWSER=f"{browser} %s") as terminal:
        assert await terminal.wait() == 0
    url = (await ann.read(workspace_id))["url"]
    assert terminal.text.splitlines() == [url]

    async def was_opened() -> bool:
        return opened.exists() and opened.read_text() == f"{url}\n"

    await until(was_opened, "the browser opened the address")


async def test_only_terminals_get_colors(ann: CliUser) -> None:
    await ann.create("notes", **RUNNING)
    assert "\x1b" not in (await ann.run("ws", "ls")).stdout
    with ann.terminal("ws", "ls") as terminal:
        await terminal.wait()
    assert "\x1b[32mRunning" in terminal.raw
    with ann.terminal("ws", "ls", NO_COLOR="1") as terminal:
        await terminal.wait()
    assert "\x1b[32m" not in terminal.raw
    assert "Running" in terminal.raw


async def test_a_changed_configuration_is_shown_with_the_command_to_apply_it(ann: CliUser) -> None:
    workspace_id = await ann.create("home", **RUNNING)
    message = "Restart to apply: image, memory."
    outdated = Condition(Status.FALSE, Reason.OUTDATED, message, datetime.now(UTC))
    conditions = conditions_to_json(Conditions(configuration_current=outdated))
    await set_columns(ann.harness.database, workspace_id, conditions=conditions)
    assert (await ann.read(workspace_id))["restart_to_apply"] is True
    shown = (await ann.run("ws", "show", "home")).stdout
    assert f"{message} Use: codehub ws restart home" in shown
