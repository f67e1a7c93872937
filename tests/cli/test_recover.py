"""Leaving an error: what gives up files is chosen in so many words."""

from datetime import timedelta

import pytest

from cli.errors import ExitCode
from codehub.domain.conditions import WorkspaceId
from tests.api.workspace_rows import LONG_AGO, damage_archive, fail, halt_deletion, lose_data
from tests.cli.harness import Somebody

ARCHIVE = "archives/a/b/home.tar.zst"


async def lost(somebody: Somebody, archive_key: str | None = ARCHIVE) -> str:
    workspace_id = await somebody.create("notes")
    await lose_data(somebody.harness.database, workspace_id, archive_key=archive_key)
    return workspace_id


async def chosen(somebody: Somebody, workspace_id: str) -> list[str]:
    path = f"{somebody.person.workspaces}/{workspace_id}/events"
    items = (await somebody.person.client.get(path)).json()["items"]
    return [each["detail"]["choice"] for each in items if each["kind"] == "recovery_requested"]


async def test_lost_files_need_a_choice_and_the_consequences_are_told(ann: Somebody) -> None:
    workspace_id = await lost(ann)
    result = await ann.run("ws", "recover", "notes")
    assert result.exit_code == ExitCode.USAGE
    assert "restore_archive: go back to an archive. The home will not have files newer" in result.stderr
    assert "start_empty: start with an empty home. The home will have none of the earlier" in result.stderr
    assert result.stderr.splitlines()[-1] == "Choose one with --choice."
    assert await chosen(ann, workspace_id) == []


async def test_on_a_terminal_the_choice_is_asked_for_and_has_no_default(ann: Somebody) -> None:
    workspace_id = await lost(ann)
    with ann.terminal("ws", "recover", "notes", "--no-wait") as terminal:
        await terminal.shows("1  retry: check again and try once more, without giving anything up")
        await terminal.answer("Your choice", "")
        await terminal.shows("Please enter")
        assert await chosen(ann, workspace_id) == []
        await terminal.answer("Your choice", "2")
        assert await terminal.ended() == 0
    assert await chosen(ann, workspace_id) == ["restore_archive"]


async def test_a_choice_can_be_given_at_once(ann: Somebody) -> None:
    workspace_id = await lost(ann)
    assert (await ann.run("ws", "recover", "notes", "--choice", "start_empty")).exit_code == 0
    assert await chosen(ann, workspace_id) == ["start_empty"]


async def test_a_choice_that_there_is_not_is_refused(ann: Somebody) -> None:
    workspace_id = await lost(ann, archive_key=None)
    result = await ann.run("ws", "recover", "notes", "--choice", "restore_archive")
    assert result.exit_code == ExitCode.REFUSED
    assert await chosen(ann, workspace_id) == []


async def test_an_error_with_one_way_out_takes_it(ann: Somebody) -> None:
    workspace_id = await ann.create("notes")
    await fail(ann.harness.database, workspace_id)
    assert (await ann.run("ws", "recover", "notes")).exit_code == 0
    assert await chosen(ann, workspace_id) == ["retry"]


@pytest.mark.parametrize("choice", [(), ("--choice", "retry")])
async def test_without_an_error_there_is_nothing_to_recover(ann: Somebody, choice: tuple[str, ...]) -> None:
    await ann.create("notes")
    result = await ann.run("ws", "recover", "notes", *choice)
    assert result.exit_code == ExitCode.REFUSED
    assert "no error" in result.stderr


async def archives_chosen(somebody: Somebody, workspace_id: str) -> list[str]:
    path = f"{somebody.person.workspaces}/{workspace_id}/events"
    items = (await somebody.person.client.get(path)).json()["items"]
    return [each["detail"]["archive"] for each in items if each["kind"] == "recovery_requested"]


async def damaged(somebody: Somebody) -> tuple[str, str]:
    """A workspace whose archive is damaged, and the id of an older archive."""
    workspace_id = await somebody.create("notes")
    _, older = await damage_archive(somebody.harness.database, workspace_id, LONG_AGO - timedelta(days=1))
    return workspace_id, older


async def test_older_archives_are_listed_where_the_last_one_is_damaged(ann: Somebody) -> None:
    _, older = await damaged(ann)
    for arguments in (("ws", "recover", "notes"), ("ws", "show", "notes")):
        result = await ann.run(*arguments, COLUMNS="300")
        assert f"--archive {older}" in result.output
        assert "42 B, not verified yet" in result.output


async def test_an_older_archive_is_chosen_by_its_id(ann: Somebody) -> None:
    workspace_id, older = await damaged(ann)
    result = await ann.run("ws", "recover", "notes", "--archive", older)
    assert result.exit_code == 0, result.output
    assert await chosen(ann, workspace_id) == ["restore_archive"]
    assert older in (await archives_chosen(ann, workspace_id))[0]


async def test_on_a_terminal_the_archive_is_picked_from_a_list(ann: Somebody) -> None:
    workspace_id, older = await damaged(ann)
    with ann.terminal("ws", "recover", "notes", "--no-wait") as terminal:
        await terminal.answer("Your choice", "2")
        await terminal.shows("Which archive?")
        await terminal.answer("Your choice", "1")
        assert await terminal.ended() == 0
    assert older in (await archives_chosen(ann, workspace_id))[0]


async def test_a_deletion_that_failed_waits_for_its_owner(ann: Somebody) -> None:
    await halt_deletion(ann.harness.database, await ann.create("notes"))
    [line] = [each for each in (await ann.run("ws", "ls")).stdout.splitlines() if "notes" in each]
    assert "waits for you" in line
    assert "On its way" not in line
    shown = (await ann.run("ws", "show", "notes", COLUMNS="300")).stdout
    assert "It could not be deleted. It needs your decision." in shown
    for way in ("recover notes --choice retry", "undelete notes", "rm notes --purge"):
        assert f"codehub ws {way}" in shown


async def test_a_deletion_that_failed_is_told_to_whoever_waits_for_it(ann: Somebody) -> None:
    workspace_id = await ann.create("notes")
    await halt_deletion(ann.harness.database, workspace_id)
    ann.harness.world.volumes[WorkspaceId(workspace_id)] = {"notes": b"precious"}
    result = await ann.run("ws", "rm", "notes", "--yes", "--wait")
    assert result.exit_code == ExitCode.FAILED
    assert "notes: It could not be deleted." in result.stderr


async def test_a_deletion_that_failed_is_purged_taken_back_or_tried_again(ann: Somebody) -> None:
    for name, arguments in {
        "one": ("rm", "one", "--purge", "--yes", "--wait"),
        "two": ("undelete", "two"),
        "three": ("recover", "three", "--wait"),
    }.items():
        await halt_deletion(ann.harness.database, await ann.create(name))
        result = await ann.run("ws", *arguments)
        assert result.exit_code == 0, result.output
        assert name in result.stdout
