"""`codehub ws ports`, `share` and `unshare`: what listens, and who may open it."""

import json
from datetime import datetime, timedelta

from rich.console import Console

from cli.errors import ExitCode
from cli.workspace.ports import render
from tests.cli.harness import CliUser


async def test_a_port_is_shared_listed_and_unshared(ann: CliUser) -> None:
    workspace_id = await ann.create("notes")
    assert "no port is shared" in (await ann.run("ws", "ports", "notes")).stderr
    shared = await ann.run("ws", "share", "notes", "3000", "--expires", "30m")
    assert shared.stdout == f"http://3000--{workspace_id}.localhost:8080/\n"
    assert "open to users who are signed in, ends in 29 min." in shared.stderr
    [item] = json.loads((await ann.run("ws", "ports", "notes", "--json")).stdout)["items"]
    assert (item["port"], item["share"]["audience"]) == (3000, "users")
    listed = (await ann.run("ws", "ports", "notes")).stdout
    assert [word in listed for word in ("3000", "not listening", "users who are signed in")] == [True] * 3
    assert (await ann.run("ws", "unshare", "notes", "3000")).exit_code == 0
    assert "no port is shared" in (await ann.run("ws", "ports", "notes")).stderr


async def test_the_expiry_is_eight_hours_or_what_the_user_says(ann: CliUser) -> None:
    await ann.create("notes")
    shared = json.loads((await ann.run("ws", "share", "notes", "3000", "--json")).stdout)
    lasts = datetime.fromisoformat(shared["expires_at"]) - datetime.fromisoformat(shared["created_at"])
    assert lasts == timedelta(hours=8)
    forever = await ann.run("ws", "share", "notes", "3000", "--expires", "never", "--json")
    assert json.loads(forever.stdout)["expires_at"] is None
    wrong = await ann.run("ws", "share", "notes", "3000", "--expires", "soon")
    assert (wrong.exit_code, "or never" in wrong.stderr) == (ExitCode.USAGE, True)


async def test_what_administrators_do_not_allow_is_explained(ann: CliUser) -> None:
    await ann.create("notes")
    refused = await ann.run("ws", "share", "notes", "3000", "--public")
    assert (refused.exit_code, "CODEHUB_PORTS_SHARING" in refused.stderr) == (ExitCode.USAGE, True)
    assert (await ann.run("ws", "share", "notes", "65536")).exit_code == ExitCode.USAGE


def test_programs_that_listen_are_shown_without_control_characters() -> None:
    item = {"port": 5173, "process": "no\x1b[2Jde", "listening": True, "url": "http://x/", "share": None}
    console = Console(width=150, record=True)
    console.print(render([item]))
    shown = console.export_text()
    assert ("\x1b" in shown, "5173" in shown, "its owner only" in shown) == (False, True, True)
