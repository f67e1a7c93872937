"""`codehub ws create`: a new workspace."""

from typing import Annotated, Any

import typer

from cli.client import Client, connect
from cli.errors import ExitCode, Failed
from cli.formatting import parse_duration
from cli.options import AsJson, Target, Url, Wait
from cli.terminal import answer, print_json
from cli.words import command, phase_label
from cli.workspace.lookup import find_workspace
from cli.workspace.waiting import require_healthy, shall_wait, wait_settled
from codehub.domain.states import DesiredState, Phase
from codehub.words import STATE_REQUESTS


def _seconds(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _idle_time(flag: str, help_: str) -> object:
    return typer.Option(flag, parser=_seconds, metavar="TIME", help=help_, show_default=False)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.", show_default=False)],
    *,
    description: Annotated[
        str | None, typer.Option("--description", "-d", metavar="TEXT", help="What it is for.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="IMAGE", help="The IDE or image; the configured one unless given."),
    ] = None,
    standby_ttl: Annotated[
        int | None, _idle_time("--stop-after", "Stop it when unused for so long: 10m, 2h.")
    ] = None,
    archive_ttl: Annotated[
        int | None, _idle_time("--archive-after", "Archive it when stopped for so long: 2h, 7d.")
    ] = None,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start it at once.")] = True,
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


Workspace = dict[str, Any]


def start(name: Target, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Start it; an archived one gets its files back first."""
    with connect(url) as client:
        request_state(client, find_workspace(client, name), DesiredState.RUNNING, wait=wait, as_json=as_json)


def stop(name: Target, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Stop it: it gives back its compute, and its files stay on disk."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if workspace["desired_state"] == DesiredState.ARCHIVED:
            # Asking for STANDBY would bring its files back to the disk.
            answer(workspace, f"{workspace['name']} is archived: nothing runs.", as_json=as_json)
            return
        request_state(client, workspace, DesiredState.STANDBY, wait=wait, as_json=as_json)


def restart(name: Target, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Stop it and start it again, with the image and the limits of now; its files stay on disk."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if workspace["phase"] == Phase.RUNNING:
            stopping = client.patch(f"/workspaces/{workspace['id']}", {"desired_state": DesiredState.STANDBY})
            workspace = _arrive(client, stopping, DesiredState.STANDBY) or stopping
        request_state(client, workspace, DesiredState.RUNNING, wait=wait, as_json=as_json)


def archive(name: Target, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Archive it: it stops, and gives back its disk once its files are safe in an archive."""
    with connect(url) as client:
        request_state(client, find_workspace(client, name), DesiredState.ARCHIVED, wait=wait, as_json=as_json)


def restore(name: Target, wait: Wait = None, as_json: AsJson = False, url: Url = None) -> None:
    """Bring its files back from the archive without starting it."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        if workspace["desired_state"] == DesiredState.RUNNING:
            # Asking for STANDBY would stop it.
            sentence = f"{workspace['name']} is running or about to: its files come back by themselves."
            answer(workspace, sentence, as_json=as_json)
            return
        request_state(client, workspace, DesiredState.STANDBY, wait=wait, as_json=as_json)


def request_state(
    client: Client, workspace: Workspace, desired: DesiredState, *, wait: bool | None, as_json: bool
) -> None:
    asked = client.patch(f"/workspaces/{workspace['id']}", {"desired_state": desired})
    finish(client, asked, desired, wait=wait, as_json=as_json)


def finish(
    client: Client, workspace: Workspace, desired: DesiredState, *, wait: bool | None, as_json: bool
) -> None:
    """Wait if one waits, and tell how it went."""
    if not shall_wait(wait):
        sentence = f"{workspace['name']} will be {phase_label(desired).lower()} soon"
        answer(workspace, f"{sentence}; look with: {command('show', workspace)}", as_json=as_json)
        return
    arrived = _arrive(client, workspace, desired, as_json=as_json)
    if arrived is None:
        answer(workspace, f"{workspace['name']} is deleted", as_json=as_json)
    elif not as_json:
        address = f": {arrived['url']}" if desired is DesiredState.RUNNING else ""
        typer.echo(f"{arrived['name']} is {phase_label(desired).lower()}{address}")


def _arrive(
    client: Client, workspace: Workspace, desired: DesiredState, *, as_json: bool = False
) -> Workspace | None:
    """Wait until it is there; what came of it is printed as JSON if asked for, also when it is an error.

    None once a workspace that should be deleted is gone.
    """
    arrived = wait_settled(client, workspace)
    if arrived is None and desired is DesiredState.DELETED:
        return None
    if arrived is None:
        raise Failed(f"{workspace['name']} was deleted meanwhile.", code=ExitCode.NOT_FOUND)
    if as_json:
        print_json(arrived)
    require_healthy(arrived)
    _require_there(arrived, desired)
    return arrived


def _require_there(workspace: Workspace, desired: DesiredState) -> None:
    if workspace["phase"] != desired:
        message = f"Somebody {STATE_REQUESTS[workspace['desired_state']]} meanwhile."
        raise Failed(message, f"Look with: {command('events', workspace)}", code=ExitCode.REFUSED)
