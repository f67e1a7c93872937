"""`codehub ws create|start|stop|restart|archive|restore`: change the state of a workspace."""

from typing import Annotated

import typer

from cli.client import Client, connect
from cli.formatting import parse_duration
from cli.options import AsJson, Url, Wait, WorkspaceArgument
from cli.terminal import print_result
from cli.workspace.lookup import find_workspace
from cli.workspace.waiting import Workspace, finish, wait_for_state
from codehub.domain.states import DesiredState, Phase


def _seconds(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _idle_time(flag: str, help_: str) -> object:
    return typer.Option(flag, parser=_seconds, metavar="TIME", help=help_, show_default=False)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)],
    *,
    description: Annotated[
        str | None, typer.Option("--description", "-d", metavar="TEXT", help="A description.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="IMAGE", help="The IDE or image. Default: the configured one."),
    ] = None,
    standby_ttl: Annotated[
        int | None, _idle_time("--stop-after", "Stop it when it is unused for this long: 10m, 2h.")
    ] = None,
    archive_ttl: Annotated[
        int | None, _idle_time("--archive-after", "Archive it when it is stopped for this long: 2h, 7d.")
    ] = None,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start it immediately.")] = True,
    wait: Wait = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Create a workspace and start it."""
    desired = DesiredState.RUNNING if start else DesiredState.STANDBY
    form = {
        "name": name,
        "description": description,
        "image_ref": image,
        "standby_ttl_seconds": standby_ttl,
        "archive_ttl_seconds": archive_ttl,
        "desired_state": desired,
    }
    with connect(url) as client:
        finish(client, client.post("/workspaces", form), desired, wait=wait, as_json=as_json)


def start(name: WorkspaceArgument, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Start it. An archived workspace is restored first."""
    with connect(url) as client:
        request_state(client, find_workspace(client, name), DesiredState.RUNNING, wait=wait, as_json=as_json)


def stop(name: WorkspaceArgument, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Stop it. Its files stay on its disk."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if workspace["desired_state"] == DesiredState.ARCHIVED:
            # Requesting STANDBY would restore it.
            print_result(
                workspace, f"{workspace['name']} is archived, so it is not running.", as_json=as_json
            )
            return
        request_state(client, workspace, DesiredState.STANDBY, wait=wait, as_json=as_json)


def restart(name: WorkspaceArgument, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Stop it and start it again with its current image and limits. Its files stay on its disk."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if workspace["phase"] == Phase.RUNNING:
            stopping = client.patch(f"/workspaces/{workspace['id']}", {"desired_state": DesiredState.STANDBY})
            workspace = wait_for_state(client, stopping, DesiredState.STANDBY) or stopping
        request_state(client, workspace, DesiredState.RUNNING, wait=wait, as_json=as_json)


def archive(name: WorkspaceArgument, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Archive it: stop it, move its files to an archive and free its disk."""
    with connect(url) as client:
        request_state(client, find_workspace(client, name), DesiredState.ARCHIVED, wait=wait, as_json=as_json)


def restore(name: WorkspaceArgument, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Restore its files from the archive without starting it."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if workspace["desired_state"] == DesiredState.RUNNING:
            # Requesting STANDBY would stop it.
            sentence = f"{workspace['name']} is running or starting, which restores its files."
            print_result(workspace, sentence, as_json=as_json)
            return
        request_state(client, workspace, DesiredState.STANDBY, wait=wait, as_json=as_json)


def request_state(
    client: Client, workspace: Workspace, desired: DesiredState, *, wait: bool | None, as_json: bool
) -> None:
    changed = client.patch(f"/workspaces/{workspace['id']}", {"desired_state": desired})
    finish(client, changed, desired, wait=wait, as_json=as_json)
