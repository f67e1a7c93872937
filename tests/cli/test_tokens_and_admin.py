"""Tokens, what administrators see, and what the shell completes."""

import asyncio
import json
import os
import subprocess

import pytest

from cli.errors import ExitCode
from tests.cli.harness import Somebody
from tests.codehub_command import CODEHUB


async def test_a_new_token_is_alone_on_the_output_and_works(ann: Somebody) -> None:
    await ann.create("notes")
    result = await ann.run("token", "create", "script")
    assert result.exit_code == 0, result.output
    assert "The token is shown only now" in result.stderr
    with_it = await ann.run("ws", "ls", CODEHUB_TOKEN=result.stdout.strip())
    assert "notes" in with_it.stdout
    assert "script" in (await ann.run("token", "ls")).stdout


async def test_a_revoked_token_works_no_more(ann: Somebody) -> None:
    made = json.loads((await ann.run("token", "create", "script", "--json")).stdout)
    assert (await ann.run("token", "revoke", "script")).stdout == "Revoked script.\n"
    refused = await ann.run("ws", "ls", CODEHUB_TOKEN=made["token"])
    assert refused.exit_code == ExitCode.NOT_SIGNED_IN
    assert (await ann.run("token", "revoke", made["id"])).exit_code == ExitCode.NOT_FOUND


async def test_tokens_of_one_name_are_told_apart_by_id(ann: Somebody) -> None:
    ids = [json.loads((await ann.run("token", "create", "twin", "--json")).stdout)["id"] for _ in range(2)]
    result = await ann.run("token", "revoke", "twin")
    assert result.exit_code == ExitCode.USAGE
    assert all(each in result.stderr for each in ids)
    assert (await ann.run("token", "revoke", ids[0])).exit_code == 0


async def test_a_token_does_not_outlive_the_one_that_makes_it(ann: Somebody) -> None:
    result = await ann.run("token", "create", "script", "--days", "3650")
    assert result.exit_code == ExitCode.REFUSED
    assert result.stderr.splitlines()[-1] == "Sign in for longer with: codehub login --days 3651"


async def test_administrators_see_the_system(ann: Somebody, admin: Somebody) -> None:
    await ann.create("of ann")
    said = (await admin.run("admin", "status")).stdout
    assert "of 100 places taken" in said
    assert "postgresql" in said
    assert ann.person.username in (await admin.run("admin", "users")).stdout
    listed = (await admin.run("admin", "workspaces", "--search", "of ann")).stdout
    assert ann.person.username in listed
    status = json.loads((await admin.run("admin", "status", "--json")).stdout)
    assert status["limits"]["max_running_global"] == 100


@pytest.mark.parametrize("command", ["status", "users", "workspaces"])
async def test_others_do_not(ann: Somebody, command: str) -> None:
    result = await ann.run("admin", command)
    assert (result.exit_code, result.stderr) == (ExitCode.REFUSED, "Only administrators may do this.\n")


async def complete(somebody: Somebody, line: str, **changed: str) -> list[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    environment = {
        **os.environ,
        **somebody.environment(**changed),
        **words,
        "_CODEHUB_COMPLETE": "complete_bash",
    }
    answer = await asyncio.to_thread(
        subprocess.run, CODEHUB, env=environment, capture_output=True, check=False
    )
    assert answer.stderr == b""
    return answer.stdout.decode().split()


async def test_the_shell_completes_commands_and_names_of_workspaces(ann: Somebody) -> None:
    await ann.create("compiler")
    await ann.create("other")
    assert await complete(ann, "codehub ws sh") == ["show"]
    assert await complete(ann, "codehub ws show com") == ["compiler"]
    assert await complete(ann, "codehub ws undelete com") == []


async def test_the_shell_completes_nothing_where_nobody_answers(ann: Somebody) -> None:
    assert await complete(ann, "codehub ws show com", CODEHUB_URL="http://127.0.0.1:9") == []
