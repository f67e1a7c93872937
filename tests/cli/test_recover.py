"""Recovery: choices that give up files must be explicit."""

from datetime import timedelta

import pytest

from cli.errors import ExitCode
from codehub.domain.conditions import WorkspaceId
from tests.api.workspace_rows import LONG_AGO, damage_archive, fail, halt_deletion, lose_data, lose_node
from tests.cli.harness import CliUser

ARCHIVE = "archives/a/b/home.tar.zst"


async def lost(user: CliUser, archive_key: str | None = ARCHIVE) -> str:
    workspace_id = await user.create("notes")
    await lose_data(user.harness.database, workspace_id, archive_key=archive_key)
    return workspace_id


async def chosen(user: CliUser, workspace_id: str) -> list[str]:
    path = f"{user.person.workspaces}/{workspace_id}/events"
    items = (await user.person.client.get(path)).json()["items"]
    return [each["detail"]["choice"] for each in items if each["kind"] == "recovery_requested"]


async def test_lost_files_require_a_choice_and_the_consequences_are_shown(ann: CliUser) -> None:
    workspace_id = await lost(ann)
    result = await ann.run("ws", "recover", "notes")
    assert result.exit_code == ExitCode.USAGE
    assert "restore_archive: go back to an archive. The home will not have files newer" in result.stderr
    assert "start_empty: start with an empty home. The home will have none of the earlier" in result.stderr
    assert result.stderr.splitlines()[-1] == "Choose one with --choice."
    assert await chosen(ann, workspace_id) == []


async def test_on_a_terminal_the_prompt_has_no_default(ann: CliUser) -> None:
    workspace_id = await lost(ann)
    with ann.terminal("ws", "recover", "notes", "--no-wait") as terminal:
        await terminal.shows("1  retry: check again and try once more, without giving anything up")
        await terminal.reply("Your choice", "")
        await terminal.shows("Please enter")
        assert await chosen(ann, workspace_id) == []
        await terminal.reply("Your choice", "2")
        assert await terminal.wait() == 0
    assert await chosen(ann, workspace_id) == ["restore_archive"]


async def test_the_choice_can_be_an_option(ann: CliUser) -> None:
    workspace_id = await lost(ann)
    assert (await ann.run("ws", "recover", "notes", "--choice", "start_empty")).exit_code == 0
    assert await chosen(ann, workspace_id) == ["start_empty"]


async def test_an_unavailable_choice_is_refused(ann: CliUser) -> None:
    workspace_id = await lost(ann, archive_key=None)
    result = await ann.run("ws", "recover", "notes", "--choice", "restore_archive")
    assert result.exit_code == ExitCode.REFUSED
    assert await chosen(ann, workspace_id) == []


async def test_the_only_choice_is_made_without_asking(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    await fail(ann.harness.database, workspace_id)
    assert (await ann.run("ws", "recover", "notes")).exit_code == 0
    assert await chosen(ann, workspace_id) == ["retry"]


@pytest.mark.parametrize("choice", [(), ("--choice", "retry")])
async def test_without_an_error_there_is_nothing_to_recover(ann: CliUser, choice: tuple[str, ...]) -> None:
    await ann.create("notes")
    result = await ann.run("ws", "recover", "notes", *choice)
    assert result.exit_code == ExitCode.REFUSED
    assert "no error" in result.stderr


async def archives_chosen(user: CliUser, workspace_id: str) -> list[str]:
    path = f"{user.person.workspaces}/{workspace_id}/events"
    items = (await user.person.client.get(path)).json()["items"]
    return [each["detail"]["archive"] for each in items if each["kind"] == "recovery_requested"]


async def damaged(user: CliUser) -> tuple[str, str]:
    """Create a workspace with a damaged archive; return it and the id of an older archive."""
    workspace_id = await user.create("notes")
    _, older = await damage_archive(user.harness.database, workspace_id, LONG_AGO - timedelta(days=1))
    return workspace_id, older


async def test_older_archives_are_listed_if_the_last_one_is_damaged(ann: CliUser) -> None:
    _, older = await damaged(ann)
    for arguments in (("ws", "recover", "notes"), ("ws", "show", "notes")):
        result = await ann.run(*arguments, COLUMNS="300")
        assert f"--archive {older}" in result.output
        assert "42 B, not verified yet" in result.output


async def test_an_older_archive_is_chosen_by_id(ann: CliUser) -> None:
    workspace_id, older = await damaged(ann)
    result = await ann.run("ws", "recover", "notes", "--archive", older)
    assert result.exit_code == 0, result.output
    assert await chosen(ann, workspace_id) == ["restore_archive"]
    assert older in (await archives_chosen(ann, workspace_id))[0]


async def test_on_a_terminal_the_archive_is_chosen_from_a_list(ann: CliUser) -> None:
    workspace_id, older = await damaged(ann)
    with ann.terminal("ws", "recover", "notes", "--no-wait") as terminal:
        await terminal.reply("Your choice", "2")
        await terminal.shows("Which archive?")
        await terminal.reply("Your choice", "1")
        assert await terminal.wait() == 0
    assert older in (await archives_chosen(ann, workspace_id))[0]


async def test_a_failed_deletion_needs_a_decision(ann: CliUser) -> None:
    await halt_deletion(ann.harness.database, await ann.create("notes"))
    [line] = [each for each in (await ann.run("ws", "ls")).stdout.splitlines() if "notes" in each]
    assert "needs your decision" in line
    assert "On its way" not in line
    shown = (await ann.run("ws", "show", "notes", COLUMNS="300")).stdout
    assert "It could not be deleted. It needs your decision." in shown
    for option in ("recover notes --choice retry", "undelete notes", "rm notes --purge"):
        assert f"codehub ws {option}" in shown


async def test_waiting_for_a_failed_deletion_reports_the_failure(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    await halt_deletion(ann.harness.database, workspace_id)
    ann.harness.world.volumes[WorkspaceId(workspace_id)] = {"notes": b"precious"}
    result = await ann.run("ws", "rm", "notes", "--yes", "--wait")
    assert result.exit_code == ExitCode.FAILED
    assert "notes: It could not be deleted." in result.stderr


async def test_a_failed_deletion_can_be_purged_undone_or_retried(ann: CliUser) -> None:
    for name, arguments in {
        "one": ("rm", "one", "--purge", "--yes", "--wait"),
        "two": ("undelete", "two"),
        "three": ("recover", "three", "--wait"),
    }.items():
        await halt_deletion(ann.harness.database, await ann.create(name))
        result = await ann.run("ws", *arguments)
        assert result.exit_code == 0, result.output
        assert name in result.stdout


async def test_a_home_on_a_lost_node_is_told_and_waited_for_by_default(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    await lose_node(ann.harness.database, workspace_id, LONG_AGO)
    shown = await ann.run("ws", "show", "notes")
    text = " ".join(shown.stdout.split())
    assert "Its files are out of reach: The home is on a disk of the node n1." in text
    assert "The last archive is from 2026-01-01 00:00 UTC." in text
    assert "--choice wait: wait until the node is back" in text
    assert "--choice restore_archive: go back to the last archive, on another node." in text
    result = await ann.run("ws", "recover", "notes")
    assert result.exit_code == 0
    assert "It continues by itself when the node is back." in result.stdout
    assert await chosen(ann, workspace_id) == ["wait"]


async def test_the_last_archive_is_chosen_instead_of_a_home_on_a_lost_node(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    await lose_node(ann.harness.database, workspace_id, LONG_AGO)
    with ann.terminal("ws", "recover", "notes", "--no-wait") as terminal:
        await terminal.shows("1  wait: wait until the node is back")
        await terminal.reply("Your choice", "2")
        await terminal.shows("Which archive?")
        await terminal.reply("Your choice", "1")
        assert await terminal.wait() == 0
    assert await chosen(ann, workspace_id) == ["restore_archive"]
