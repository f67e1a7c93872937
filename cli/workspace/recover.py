"""`codehub ws recover`: the ways out of an error, with what each gives up."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.prompt import IntPrompt

from cli.client import connect
from cli.errors import ExitCode, Failed
from cli.formatting import clock, size
from cli.options import AsJson, Target, Url, Wait
from cli.terminal import can_ask, say
from cli.words import failure_headline
from cli.workspace.lifecycle import finish
from cli.workspace.lookup import find_workspace
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState

Document = Mapping[str, Any]
Choice = Annotated[
    RecoverChoice | None,
    typer.Option(
        "--choice",
        metavar="CHOICE",
        help="retry, restore_archive, use_disk or start_empty; needed where files are lost.",
        show_default=False,
    ),
]
Archive = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="ID",
        help="The archive to go back to, from `ws show`; implies --choice restore_archive.",
        show_default=False,
    ),
]


def recover(
    name: Target,
    choice: Choice = None,
    *,
    archive: Archive = None,
    wait: Wait = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Recover from an error: look again and go on; for lost or damaged files you choose what to give up."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        chosen = choice or (RecoverChoice.RESTORE_ARCHIVE if archive else _choose(workspace))
        if chosen is RecoverChoice.RESTORE_ARCHIVE and archive is None:
            archive = _choose_archive(workspace)
        request = {"choice": chosen} | ({"archive": archive} if archive else {})
        asked = client.post(f"/workspaces/{workspace['id']}/recover", request)
        finish(client, asked, DesiredState(asked["desired_state"]), wait=wait, as_json=as_json)


def in_words(option: Document) -> str:
    """What a choice does, and what it costs."""
    return f"{option['meaning']}. {option['consequence'] or ''}".rstrip(" .") + "."


def archive_option(archive: Document) -> str:
    """How to choose it, and what it is."""
    return f"--archive {archive['archive_op_id']}: {archive_in_words(archive)}"


def archive_in_words(archive: Document) -> str:
    made = f"made {clock(archive['created_at'])}" if archive["created_at"] else "time unknown"
    length = "size unknown" if archive["size_bytes"] is None else size(archive["size_bytes"])
    verified = f"verified {clock(archive['verified_at'])}" if archive["verified_at"] else "not verified yet"
    return ", ".join([made, length, verified, *(["the current one"] if archive["current"] else [])])


def _choose(workspace: Document) -> RecoverChoice:
    options = workspace["recover"]["choices"] if workspace["recover"] else []
    if not options:
        raise Failed(f"{workspace['name']} has no error to recover from.", code=ExitCode.REFUSED)
    if len(options) == 1:
        return RecoverChoice(options[0]["choice"])
    described = [f"{each['choice']}: {in_words(each)}" for each in options]
    if not can_ask():
        more = [*described, *(archive_option(each) for each in _archives(workspace))]
        raise Failed(_explanation(workspace), "Choose one with --choice.", code=ExitCode.USAGE, more=more)
    say(_explanation(workspace))
    return RecoverChoice(options[_ask("Your choice", described)]["choice"])


def _choose_archive(workspace: Document) -> str | None:
    """Only one that is not the last has to be named; the API says so where nobody can be asked."""
    archives = _archives(workspace)
    if not archives or not can_ask():
        return None
    say("Which archive?")
    picked: str = archives[_ask("Your choice", [archive_in_words(each) for each in archives])][
        "archive_op_id"
    ]
    return picked


def _archives(workspace: Document) -> Sequence[Document]:
    return workspace["recover"]["archives"] if workspace["recover"] else []


def _explanation(workspace: Document) -> str:
    error = workspace["error"]
    return f"{workspace['name']}: {failure_headline(workspace)}. {error['message'] or error['explanation']}"


def _ask(question: str, lines: Sequence[str]) -> int:
    """The place of the one that is picked. No default: files are never given up by pressing Enter."""
    for number, line in enumerate(lines, 1):
        say(f"  {number}  {line}")
    numbers = [str(each) for each in range(1, len(lines) + 1)]
    return IntPrompt.ask(question, console=Console(stderr=True), choices=numbers) - 1
