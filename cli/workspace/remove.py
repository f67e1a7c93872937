"""`codehub ws rm` and `codehub ws undelete`: delete a workspace, or undo that."""

from typing import Annotated, Any

import typer

from cli.client import Client, connect
from cli.control_characters import printable
from cli.errors import CommandError, ExitCode
from cli.options import AsJson, DeletedWorkspaceArgument, Url, Wait, WorkspaceArgument, Yes
from cli.terminal import print_json, print_note, print_result, require_terminal
from cli.words import command
from cli.workspace.lookup import find_deleted, find_workspace
from cli.workspace.waiting import finish, require_healthy, should_wait, wait_until_settled
from codehub.domain.states import DesiredState


def rm(
    name: WorkspaceArgument,
    *,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Delete it for good, without a last archive. Also completes a failed deletion.",
        ),
    ] = False,
    yes: Yes = False,
    wait: Wait = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Delete it after a last archive; for a while, `codehub ws undelete` brings it back."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if not yes:
            _confirm(workspace, purge=purge)
        deletion = client.delete(f"/workspaces/{workspace['id']}", purge=purge)
        _finish_deletion(client, deletion, wait=wait, as_json=as_json)


def undelete(
    name: DeletedWorkspaceArgument, wait: Wait = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Undo a deletion: the workspace comes back archived, with the files of its last archive."""
    with connect(url) as client:
        workspace = client.post(f"/workspaces/{find_deleted(client, name)}/undelete")
        finish(client, workspace, DesiredState.ARCHIVED, wait=wait, as_json=as_json)


def _confirm(workspace: dict[str, Any], *, purge: bool) -> None:
    require_terminal("confirmation", "Use --yes to delete it without confirmation.")
    print_note(_consequence(workspace, purge=purge))
    typed = typer.prompt(printable(f"Type {workspace['name']} to delete it"), err=True)
    if typed != workspace["name"]:
        raise CommandError("The name does not match; nothing was deleted.", code=ExitCode.USAGE)


def _consequence(workspace: dict[str, Any], *, purge: bool) -> str:
    name = workspace["name"]
    if not purge and workspace["deleted_at"]:
        return f"{name} is already being deleted. --purge deletes it without a last archive."
    if purge or workspace["needs_person"]:
        return f"All files of {name} will be lost: there will be no last archive."
    return f"{name} will be deleted after a last archive. For a while, `undelete` can bring it back."


def _finish_deletion(client: Client, deletion: dict[str, Any], *, wait: bool | None, as_json: bool) -> None:
    workspace = deletion["workspace"]
    if not should_wait(wait):
        print_result(deletion, deletion["message"], as_json=as_json)
        return
    settled = wait_until_settled(client, workspace)
    if as_json:
        print_json(deletion)
    if settled is not None:
        require_healthy(settled)
        raise CommandError(f"Someone undid the deletion of {workspace['name']}.", code=ExitCode.REFUSED)
    if not as_json:
        undo = "" if deletion["purge"] else f". Bring it back with: {command('undelete', workspace)}"
        typer.echo(printable(f"{workspace['name']} is deleted{undo}"))
