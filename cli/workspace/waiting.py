"""Waiting until a workspace is where it should be."""

from typing import Any

from cli.client import Client
from cli.errors import ExitCode, Failed
from cli.terminal import is_interactive
from cli.words import command, failure_headline
from cli.workspace.live_events import Seen, follow
from cli.workspace.progress_view import showing

Workspace = dict[str, Any]


def shall_wait(asked: bool | None) -> bool:
    """On a terminal, unless told otherwise."""
    return is_interactive() if asked is None else asked


def wait_settled(client: Client, workspace: Workspace) -> Workspace | None:
    """Return the workspace once it is settled, None once it is gone; interrupting this changes nothing."""
    try:
        with showing() as view:
            for update in follow(client, workspace["id"]):
                view.show(update)
                if isinstance(update, Seen) and (update.workspace is None or update.workspace["settled"]):
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
    if not workspace["needs_person"] or error is None:
        return
    what = error["message"] or error["explanation"]
    raise Failed(
        f"{workspace['name']}: {failure_headline(workspace)}. {what}",
        f"See the ways out with: {command('show', workspace)}",
        more=[error["explanation"]] if error["message"] not in {None, error["explanation"]} else [],
    )
