"""`codehub ws recover`: the ways out of an error, with what each gives up."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.prompt import IntPrompt

from cli.client import connect
from cli.exit_codes import ExitCode
from cli.failed import Failed
from cli.finding import find_workspace
from cli.options import AsJson, Target, Url, Wait
from cli.output import can_ask, say
from cli.workspace_states import finish
from codehub.domain.recovery import MEANINGS, RecoverChoice
from codehub.domain.states import DesiredState

Choice = Annotated[
    RecoverChoice | None,
    typer.Option(
        "--choice",
        metavar="CHOICE",
        help="retry, restore_archive or start_empty; needed where files are lost.",
        show_default=False,
    ),
]


def recover(
    name: Target, choice: Choice = None, wait: Wait = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Leave ERROR: look again and go on; where files are lost you choose what to give up."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        chosen = choice or _choose(workspace)
        asked = client.post(f"/workspaces/{workspace['id']}/recover", {"choice": chosen})
        finish(client, asked, DesiredState(asked["desired_state"]), wait=wait, as_json=as_json)


def _choose(workspace: dict[str, Any]) -> RecoverChoice:
    error = workspace["error"]
    choices = [RecoverChoice(each) for each in error["recover_choices"]] if error else []
    if not choices:
        phase = workspace["phase"]
        raise Failed(f"{workspace['name']} is {phase}: there is no error to leave.", code=ExitCode.REFUSED)
    if choices == [RecoverChoice.RETRY]:
        return RecoverChoice.RETRY
    described = [f"{each}: {MEANINGS[each]}" for each in choices]
    explanation = f"{workspace['name']}: {error['reason']}. {error['message'] or error['explanation']}"
    if not can_ask():
        raise Failed(explanation, "Choose one with --choice.", code=ExitCode.USAGE, more=described)
    return _ask(explanation, choices, described)


def _ask(explanation: str, choices: list[RecoverChoice], described: list[str]) -> RecoverChoice:
    say(explanation)
    for number, line in enumerate(described, 1):
        say(f"  {number}  {line}")
    # No default: what gives up files is never chosen by pressing Enter.
    number = IntPrompt.ask(
        "Your choice",
        console=Console(stderr=True),
        choices=[str(each) for each in range(1, len(choices) + 1)],
    )
    return choices[number - 1]
