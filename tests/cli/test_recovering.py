"""Leaving an error: what gives up files is chosen in so many words."""

import pytest

from cli.exit_codes import ExitCode
from tests.api.behind import fail, lose_data
from tests.cli.stand import Somebody

ARCHIVE = "archives/a/b/home.tar.zst"


async def lost(somebody: Somebody, archive_key: str | None = ARCHIVE) -> str:
    workspace_id = await somebody.create("notes")
    await lose_data(somebody.stand.database, workspace_id, archive_key=archive_key)
    return workspace_id


async def chosen(somebody: Somebody, workspace_id: str) -> list[str]:
    path = f"{somebody.person.workspaces}/{workspace_id}/events"
    items = (await somebody.person.client.get(path)).json()["items"]
    return [each["detail"]["choice"] for each in items if each["kind"] == "recovery_requested"]


async def test_lost_files_need_a_choice_and_the_consequences_are_told(ann: Somebody) -> None:
    workspace_id = await lost(ann)
    result = await ann.run("ws", "recover", "notes")
    assert result.exit_code == ExitCode.USAGE
    assert "restore_archive: go back to the last archive and give up what is newer" in result.stderr
    assert "start_empty: begin with a new home and give up the archive too" in result.stderr
    assert result.stderr.splitlines()[-1] == "Choose one with --choice."
    assert await chosen(ann, workspace_id) == []


async def test_on_a_terminal_the_choice_is_asked_for_and_has_no_default(ann: Somebody) -> None:
    workspace_id = await lost(ann)
    with ann.terminal("ws", "recover", "notes", "--no-wait") as terminal:
        await terminal.shows("1  retry: look for the files again and give up nothing")
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
    await fail(ann.stand.database, workspace_id)
    assert (await ann.run("ws", "recover", "notes")).exit_code == 0
    assert await chosen(ann, workspace_id) == ["retry"]


@pytest.mark.parametrize("choice", [(), ("--choice", "retry")])
async def test_without_an_error_there_is_nothing_to_recover(ann: Somebody, choice: tuple[str, ...]) -> None:
    await ann.create("notes")
    result = await ann.run("ws", "recover", "notes", *choice)
    assert result.exit_code == ExitCode.REFUSED
    assert "no error" in result.stderr
