"""Tokens, administrator commands and shell completion."""

import asyncio
import json
import os
import subprocess

import pytest

from cli.errors import ExitCode
from tests.cli.harness import CliUser
from tests.codehub_command import CODEHUB


async def test_a_new_token_is_the_only_output_and_works(ann: CliUser) -> None:
    await ann.create("notes")
    result = await ann.run("token", "create", "script")
    assert result.exit_code == 0, result.output
    assert "The token is shown only once" in result.stderr
    with_it = await ann.run("ws", "ls", CODEHUB_TOKEN=result.stdout.strip())
    assert "notes" in with_it.stdout
    assert "script" in (await ann.run("token", "ls")).stdout


async def test_a_revoked_token_no_longer_works(ann: CliUser) -> None:
    created = json.loads((await ann.run("token", "create", "script", "--json")).stdout)
    assert (await ann.run("token", "revoke", "script")).stdout == "Revoked script.\n"
    refused = await ann.run("ws", "ls", CODEHUB_TOKEN=created["token"])
    assert refused.exit_code == ExitCode.NOT_SIGNED_IN
    assert (await ann.run("token", "revoke", created["id"])).exit_code == ExitCode.NOT_FOUND


async def test_tokens_with_the_same_name_are_distinguished_by_id(ann: CliUser) -> None:
    ids = [json.loads((await ann.run("token", "create", "twin", "--json")).stdout)["id"] for _ in range(2)]
    result = await ann.run("token", "revoke", "twin")
    assert result.exit_code == ExitCode.USAGE
    assert all(each in result.stderr for each in ids)
    assert (await ann.run("token", "revoke", ids[0])).exit_code == 0


async def test_a_token_does_not_outlive_its_creator(ann: CliUser) -> None:
    result = await ann.run("token", "create", "script", "--days", "3650")
    assert result.exit_code == ExitCode.REFUSED
    assert result.stderr.splitlines()[-1] == "Sign in for longer with: codehub login --days 3651"


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
    assert await complete(ann, "codehub ws sh") == ["show"]
    assert await complete(ann, "codehub ws show com") == ["compiler"]
    assert await complete(ann, "codehub ws undelete com") == []


async def test_the_shell_completes_nothing_without_a_server(ann: CliUser) -> None:
    assert await complete(ann, "codehub ws show com", CODEHUB_URL="http://127.0.0.1:9") == []
