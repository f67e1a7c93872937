"""Deletion asks for confirmation, and deleted workspaces can be undeleted."""

import json

from cli.errors import ExitCode
from codehub.domain.states import Phase
from tests.api.workspace_rows import mark_deleted, set_columns
from tests.cli.harness import CliUser


async def test_deletion_asks_for_the_name(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    with ann.terminal("ws", "rm", "notes", "--no-wait") as terminal:
        await terminal.reply("Type notes to delete it", "yes")
        assert await terminal.wait() == ExitCode.USAGE
    assert "nothing was deleted" in terminal.text
    assert (await ann.read(workspace_id))["desired_state"] == "STANDBY"
    with ann.terminal("ws", "rm", "notes", "--no-wait") as terminal:
        await terminal.reply("Type notes to delete it", "notes")
        assert await terminal.wait() == 0


async def test_without_a_terminal_nothing_is_deleted_without_yes(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    result = await ann.run("ws", "rm", "notes")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        ExitCode.USAGE,
        "Use --yes to delete it without confirmation.",
    )
    assert (await ann.read(workspace_id))["desired_state"] == "STANDBY"


async def test_deleted_workspaces_are_listed_with_their_undelete_period(ann: CliUser) -> None:
    await mark_deleted(
        ann.harness.database, await ann.create("gone", archive_key="archives/a/b/home.tar.zst"), Phase.DELETED
    )
    assert "gone" not in (await ann.run("ws", "ls")).stdout
    assert "at least until" in (await ann.run("ws", "ls", "--deleted")).stdout


async def test_undelete_ignores_purged_workspaces_of_the_same_name(ann: CliUser) -> None:
    kept = await ann.create("twin", archive_key="archives/a/b/home.tar.zst")
    for workspace_id, purge in {kept: False, await ann.create("twin"): True}.items():
        await mark_deleted(ann.harness.database, workspace_id, Phase.DELETED)
        await set_columns(ann.harness.database, workspace_id, purge=purge)
    result = await ann.run("ws", "undelete", "twin", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["id"] == kept
