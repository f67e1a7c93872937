"""Tokens, administrator commands and shell completion."""

import asyncio
import json
import os
import subprocess

import pytest
from typer.testing import Result

from cli.errors import ExitCode
from tests.api.harness import PASSWORD
from tests.cli.harness import CliUser
from tests.codehub_command import CODEHUB


async def create_token(user: CliUser, *arguments: str) -> Result:
    return await user.run("token", "create", *arguments, "--password-stdin", stdin=f"{PASSWORD}\n")


async def test_a_new_token_is_the_only_output_and_works(ann: CliUser) -> None:
    await ann.create("notes")
    result = await create_token(ann, "script")
    assert result.exit_code == 0, result.output
    assert "The token is shown only once" in result.stderr
    with_it = await ann.run("ws", "ls", CODEHUB_TOKEN=result.stdout.strip())
    assert "notes" in with_it.stdout
    assert "script" in (await ann.run("token", "ls")).stdout


async def test_a_revoked_token_no_longer_works(ann: CliUser) -> None:
    created = json.loads((await create_token(ann, "script", "--json")).stdout)
    assert (await ann.run("token", "revoke", "script")).stdout == "Revoked script.\n"
    refused = await ann.run("ws", "ls", CODEHUB_TOKEN=created["token"])
    assert refused.exit_code == ExitCode.NOT_SIGNED_IN
    assert (await ann.run("token", "revoke", created["id"])).exit_code == ExitCode.NOT_FOUND


async def test_tokens_with_the_same_name_are_distinguished_by_id(ann: CliUser) -> None:
    ids = [json.loads((await create_token(ann, "twin", "--json")).stdout)["id"] for _ in range(2)]
    result = await ann.run("token", "revoke", "twin")
    assert result.exit_code == ExitCode.USAGE
    assert all(each in result.stderr for each in ids)
    assert (await ann.run("token", "revoke", ids[0])).exit_code == 0


async def test_a_token_is_not_enough_to_create_one(ann: CliUser) -> None:
    result = await ann.run("token", "create", "script", "--password-stdin", stdin="wrong horse\n")
    assert result.exit_code == ExitCode.NOT_SIGNED_IN
    without = await ann.run("token", "create", "script")
    assert without.exit_code == ExitCode.USAGE
    assert "--password-stdin" in without.stderr
    assert "script" not in (await ann.run("token", "ls")).stdout


async def test_signing_out_everywhere_ends_sessions_and_tokens(ann: CliUser) -> None:
    other = (await create_token(ann, "script")).stdout.strip()
    name = ann.person.username
    signed_in = await ann.run("login", "--user", name, "--password-stdin", stdin=f"{PASSWORD}\n")
    assert signed_in.exit_code == 0, signed_in.output
    result = await ann.run("logout", "--everywhere")
    assert result.exit_code == 0, result.output
    assert (await ann.run("ws", "ls", CODEHUB_TOKEN=other)).exit_code == ExitCode.NOT_SIGNED_IN
    assert (await ann.person.client.get("/api/v1/session")).status_code == 401


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("50GB", "may use 50 GB"),
        ("1.5 MB", "may use 1.5 MB"),
        ("any", "may use any amount"),
        ("default", "may use"),
    ],
)
async def test_an_administrator_sets_a_disk_limit(
    ann: CliUser, admin: CliUser, limit: str, said: str
) -> None:
    workspace_id = await ann.create("large")
    result = await admin.run("admin", "disk", workspace_id, limit)
    assert (result.exit_code, said in result.output) == (0, True), result.output
    assert (await ann.run("admin", "disk", workspace_id, limit)).exit_code == ExitCode.REFUSED


@pytest.mark.parametrize("limit", ["50", "50GX", "-1GB", "GB"])
async def test_a_disk_limit_that_is_no_size_is_refused(admin: CliUser, limit: str) -> None:
    result = await admin.run("admin", "disk", "x", "--", limit)
    assert (result.exit_code, "such as 50GB" in result.output) == (ExitCode.USAGE, True)


async def test_administrators_see_the_system(ann: CliUser, admin: CliUser) -> None:
    await ann.create("workspace of ann")
    output = (await admin.run("admin", "status")).stdout
    assert "of 100 running slots used" in output
    assert "postgresql" in output
    assert ann.person.username in (await admin.run("admin", "users")).stdout
    listed = (await admin.run("admin", "workspaces", "--search", "workspace of ann")).stdout
    assert ann.person.username in listed
    status = json.loads((await admin.run("admin", "status", "--json")).stdout)
    assert status["limits"]["max_running_global"] == 100


@pytest.mark.parametrize("command", ["status", "users", "workspaces"])
async def test_other_users_do_not(ann: CliUser, command: str) -> None:
    result = await ann.run("admin", command)
    assert (result.exit_code, result.stderr) == (ExitCode.REFUSED, "Only administrators may do this.\n")


async def complete(user: CliUser, line: str, **changed: str) -> list[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    environment = {
        **os.environ,
        **user.environment(**changed),
        **words,
        "_CODEHUB_COMPLETE": "complete_bash",
    }
    result = await asyncio.to_thread(
        subprocess.run, CODEHUB, env=environment, capture_output=True, check=False
    )
    assert result.stderr == b""
    return result.stdout.decode().split()


async def test_the_shell_completes_commands_and_workspace_names(ann: CliUser) -> None:
    await ann.create("compiler")
    await ann.create("other")
    assert await complete(ann, "codehub ws sho") == ["show"]
    assert await complete(ann, "codehub ws show com") == ["compiler"]
    assert await complete(ann, "codehub ws undelete com") == []


async def test_the_shell_completes_nothing_without_a_server(ann: CliUser) -> None:
    assert await complete(ann, "codehub ws show com", CODEHUB_URL="http://127.0.0.1:9") == []
