"""Wait until a workspace reaches a state, and print the result."""

from typing import Any

import typer

from cli.client import Client
from cli.control_characters import printable
from cli.errors import CommandError, ExitCode
from cli.terminal import is_interactive, print_json, print_result
from cli.words import command, failure_headline, phase_label
from cli.workspace.live_events import Snapshot, follow
from cli.workspace.progress_view import show_progress
from codehub.domain.states import DesiredState
from codehub.words import STATE_REQUESTS

Workspace = dict[str, Any]


def should_wait(option: bool | None) -> bool:
    """Return the option, or whether this is a terminal."""
    return is_interactive() if option is None else option


def finish(
    client: Client, workspace: Workspace, desired: DesiredState, *, wait: bool | None, as_json: bool
) -> None:
    """Wait for the desired state if requested, and print the result."""
    name = workspace["name"]
    if not should_wait(wait):
        sentence = f"{name} will be {phase_label(desired).lower()} soon"
        print_result(workspace, f"{sentence}. Check with: {command('show', workspace)}", as_json=as_json)
        return
    reached = wait_for_state(client, workspace, desired, as_json=as_json)
    if reached is None:
        print_result(workspace, f"{name} is deleted", as_json=as_json)
    elif not as_json:
        address = f": {reached['url']}" if desired is DesiredState.RUNNING else ""
        typer.echo(printable(f"{reached['name']} is {phase_label(desired).lower()}{address}"))


def wait_for_state(
    client: Client, workspace: Workspace, desired: DesiredState, *, as_json: bool = False
) -> Workspace | None:
    """Wait for the desired state and return the workspace, or None if it is deleted as desired.

    Print the workspace as JSON if requested, also if it failed.
    """
    settled = wait_until_settled(client, workspace)
    if settled is None and desired is DesiredState.DELETED:
        return None
    if settled is None:
        raise CommandError(f"{workspace['name']} was deleted in the meantime.", code=ExitCode.NOT_FOUND)
    if as_json:
        print_json(settled)
    require_healthy(settled)
    if settled["phase"] != desired:
        raise CommandError(
            f"Someone {STATE_REQUESTS[settled['desired_state']]} in the meantime.",
            f"See: {command('events', settled)}",
            code=ExitCode.REFUSED,
        )
    return settled


def wait_until_settled(client: Client, workspace: Workspace) -> Workspace | None:
    """Return the workspace when it is settled, or None when it is deleted."""
    try:
        with show_progress() as view:
            for update in follow(client, workspace["id"]):
                view.show(update)
                if isinstance(update, Snapshot) and (update.workspace is None or update.workspace["settled"]):
                    return update.workspace
    except KeyboardInterrupt:
        raise CommandError(
            f"You stopped waiting for {workspace['name']}. The operation continues.",
            f"Check with: {command('show', workspace)}",
            code=ExitCode.INTERRUPTED,
        ) from None
    return None


def require_healthy(workspace: Workspace) -> None:
    """Raise an error that explains a failed workspace and what to do."""
    error = workspace["error"]
    if not workspace["needs_person"] or error is None:
        return
    reason = error["message"] or error["explanation"]
    raise CommandError(
        f"{workspace['name']}: {failure_headline(workspace)}. {reason}",
        f"See your options with: {command('show', workspace)}",
        details=[error["explanation"]] if error["message"] not in {None, error["explanation"]} else [],
    )
