"""`codehub ws rm|undelete`: delete a workspace, and think again."""

from typing import Annotated, Any

import typer

from cli.client import Client, connect
from cli.errors import ExitCode, Failed
from cli.options import AsJson, DeletedTarget, Target, Url, Wait, Yes
from cli.terminal import answer, print_json, require_terminal, say
from cli.words import command
from cli.workspace.lifecycle import finish
from cli.workspace.lookup import find_deleted, find_workspace
from cli.workspace.waiting import require_healthy, shall_wait, wait_settled
from codehub.domain.states import DesiredState


def rm(
    name: Target,
    *,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Make no last archive: this cannot be taken back. Also ends a deletion that failed.",
        ),
    ] = False,
    yes: Yes = False,
    wait: Wait = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Delete it after a last archive; `undelete` brings it back for a while."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if not yes:
            _ask(workspace, purge=purge)
        deletion = client.delete(f"/workspaces/{workspace['id']}", purge=purge)
        _finish(client, deletion, wait=wait, as_json=as_json)


def undelete(name: DeletedTarget, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Take a deletion back: it returns as ARCHIVED, with the files of its last archive."""
    with connect(url) as client:
        workspace = client.post(f"/workspaces/{find_deleted(client, name)}/undelete")
        finish(client, workspace, DesiredState.ARCHIVED, wait=wait, as_json=as_json)


def _ask(workspace: dict[str, Any], *, purge: bool) -> None:
    require_terminal("whether to delete it", "Delete it without a question with --yes.")
    say(_consequence(workspace, purge=purge))
    typed = typer.prompt(f"Type {workspace['name']} to delete it", err=True)
    if typed != workspace["name"]:
        raise Failed("That is not its name; nothing was deleted.", code=ExitCode.USAGE)


def _consequence(workspace: dict[str, Any], *, purge: bool) -> str:
    if not purge and workspace["deleted_at"]:
        return f"{workspace['name']} is being deleted already; --purge deletes it without a last archive."
    if purge or workspace["needs_person"]:
        return f"All files of {workspace['name']} will be gone: no last archive is made."
    return (
        f"{workspace['name']} is deleted after a last archive, which `undelete` can bring back for a while."
    )


def _finish(client: Client, deletion: dict[str, Any], *, wait: bool | None, as_json: bool) -> None:
    workspace = deletion["workspace"]
    if not shall_wait(wait):
        answer(deletion, deletion["message"], as_json=as_json)
        return
    left = wait_settled(client, workspace)
    if as_json:
        print_json(deletion)
    if left is not None:
        require_healthy(left)
        raise Failed(f"Somebody took the deletion of {workspace['name']} back.", code=ExitCode.REFUSED)
    if not as_json:
        back = "" if deletion["purge"] else f"; bring it back with: {command('undelete', workspace)}"
        typer.echo(f"{workspace['name']} is deleted{back}")
