"""`codehub ws recover`: leave an error by choosing what to give up, if anything."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.prompt import IntPrompt

from cli.client import connect
from cli.errors import CommandError, ExitCode
from cli.formatting import format_size, local_time
from cli.options import AsJson, Url, Wait, WorkspaceArgument
from cli.terminal import can_prompt, print_note, print_result
from cli.words import failure_headline
from cli.workspace.lookup import find_workspace
from cli.workspace.waiting import finish
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState
from codehub.words import CONTINUES_WITH_NODE, OUT_OF_REACH

Document = Mapping[str, Any]
Choice = Annotated[
    RecoverChoice | None,
    typer.Option(
        "--choice",
        metavar="CHOICE",
        help="retry, wait, restore_archive, use_disk or start_empty. Required if files are lost.",
        show_default=False,
    ),
]
Archive = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="ID",
        help="The archive to restore, from `codehub ws show`. Implies --choice restore_archive.",
        show_default=False,
    ),
]


def recover(
    name: WorkspaceArgument,
    choice: Choice = None,
    *,
    archive: Archive = None,
    wait: Wait = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Recover from an error by trying again; if files are lost, damaged or out of reach, choose how."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        chosen = choice or (RecoverChoice.RESTORE_ARCHIVE if archive else _choose(workspace))
        if chosen is RecoverChoice.RESTORE_ARCHIVE and archive is None:
            archive = _choose_archive(workspace)
        form = {"choice": chosen} | ({"archive": archive} if archive else {})
        recovering = client.post(f"/workspaces/{workspace['id']}/recover", form)
        if chosen is RecoverChoice.WAIT:
            print_result(recovering, f"{workspace['name']}: {CONTINUES_WITH_NODE}", as_json=as_json)
            return
        desired = DesiredState(recovering["desired_state"])
        finish(client, recovering, desired, wait=wait, as_json=as_json)


def describe_choice(option: Document) -> str:
    """Return what a choice does and what it costs."""
    return f"{option['meaning']}. {option['consequence'] or ''}".rstrip(" .") + "."


def describe_archive_option(archive: Document) -> str:
    """Return the option that chooses the archive, and its description."""
    return f"--archive {archive['archive_op_id']}: {describe_archive(archive)}"


def describe_archive(archive: Document) -> str:
    created = f"created {local_time(archive['created_at'])}" if archive["created_at"] else "time unknown"
    size = "size unknown" if archive["size_bytes"] is None else format_size(archive["size_bytes"])
    verified_at = archive["verified_at"]
    verified = f"verified {local_time(verified_at)}" if verified_at else "not verified yet"
    return ", ".join([created, size, verified, *(["the current one"] if archive["current"] else [])])


def _choose(workspace: Document) -> RecoverChoice:
    options = workspace["recover"]["choices"] if workspace["recover"] else []
    if not options:
        raise CommandError(f"{workspace['name']} has no error to recover from.", code=ExitCode.REFUSED)
    if len(options) == 1:
        return RecoverChoice(options[0]["choice"])
    if not can_prompt() and options[0]["choice"] == RecoverChoice.WAIT:
        return RecoverChoice.WAIT
    described = [f"{each['choice']}: {describe_choice(each)}" for each in options]
    if not can_prompt():
        details = [*described, *(describe_archive_option(each) for each in _archives(workspace))]
        raise CommandError(
            _explanation(workspace), "Choose one with --choice.", code=ExitCode.USAGE, details=details
        )
    print_note(_explanation(workspace))
    return RecoverChoice(options[_prompt("Your choice", described)]["choice"])


def _choose_archive(workspace: Document) -> str | None:
    """Ask for the archive; without a terminal, the API restores the current one or refuses."""
    archives = _archives(workspace)
    if not archives or not can_prompt():
        return None
    print_note("Which archive?")
    chosen = archives[_prompt("Your choice", [describe_archive(each) for each in archives])]
    return str(chosen["archive_op_id"])


def _archives(workspace: Document) -> Sequence[Document]:
    return workspace["recover"]["archives"] if workspace["recover"] else []


def _explanation(workspace: Document) -> str:
    if lost := workspace["out_of_reach"]:
        return f"{workspace['name']}: {OUT_OF_REACH.headline}. {lost['message']}"
    error = workspace["error"]
    return f"{workspace['name']}: {failure_headline(workspace)}. {error['message'] or error['explanation']}"


def _prompt(question: str, lines: Sequence[str]) -> int:
    """Return the index of the chosen line. There is no default: Enter must not give up files."""
    for number, line in enumerate(lines, 1):
        print_note(f"  {number}  {line}")
    numbers = [str(each) for each in range(1, len(lines) + 1)]
    return IntPrompt.ask(question, console=Console(stderr=True), choices=numbers) - 1
