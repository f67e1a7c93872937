"""Waiting until a workspace is where it should be."""

from typing import Any

from cli.client import Client
from cli.exit_codes import ExitCode
from cli.failed import Failed
from cli.live import Seen, follow
from cli.output import is_interactive
from cli.showing import showing
from cli.words import command
from codehub.domain.failures import TERMINAL
from codehub.domain.states import Operation, Phase

Workspace = dict[str, Any]


def shall_wait(asked: bool | None) -> bool:
    """On a terminal, unless told otherwise."""
    return is_interactive() if asked is None else asked


def wait_settled(client: Client, workspace: Workspace, *, purge: bool = False) -> Workspace | None:
    """The workspace once nothing more happens to it; None once it is gone. It goes on if one goes away."""
    try:
        with showing() as view:
            for update in follow(client, workspace["id"]):
                view.show(update)
                if isinstance(update, Seen) and _is_settled(update.workspace, purge=purge):
                    return update.workspace
    except KeyboardInterrupt:
        raise Failed(
            f"You no longer watch {workspace['name']}; what you asked for goes on.",
            f"Look again with: {command('show', workspace)}",
            code=ExitCode.INTERRUPTED,
        ) from None
    return None


def require_healthy(workspace: Workspace) -> None:
    """Raise what went wrong, and the way out."""
    error = workspace["error"]
    if workspace["phase"] != Phase.ERROR or error is None:
        return
    raise Failed(
        f"{workspace['name']} is in ERROR ({error['reason']}): {error['message'] or error['explanation']}",
        f"See the ways out with: {command('recover', workspace)}",
        more=[error["explanation"]] if error["message"] not in {None, error["explanation"]} else [],
    )


def _is_settled(workspace: Workspace | None, *, purge: bool) -> bool:
    """Where it should be, or where it stays until a person decides."""
    if workspace is None:
        return True
    if workspace["operation"] != Operation.NONE or workspace["recovering"]:
        return False
    if purge:
        # It goes on in spite of errors, until the workspace is gone.
        return False
    error = workspace["error"]
    halted = error is not None and error["reason"] in TERMINAL
    return halted or workspace["phase"] in {Phase.ERROR, workspace["desired_state"]}
