"""Signing in and out, and which CodeHub is talked to with which token."""

import json
import stat
from pathlib import Path

import pytest

from cli.connection import DEFAULT_URL, find_address
from cli.errors import ExitCode
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import lock_data_dir, write_state
from testkit.processes import free_port
from testkit.seaweed import S3Server
from tests.api.harness import PASSWORD
from tests.cli.harness import Somebody

NOBODY = {"CODEHUB_TOKEN": ""}


async def sign_in(somebody: Somebody) -> None:
    arguments = ("login", "--user", somebody.person.username, "--password-stdin")
    result = await somebody.run(*arguments, stdin=f"{PASSWORD}\n", **NOBODY)
    assert result.exit_code == 0, result.output


async def token_names(somebody: Somebody) -> list[str]:
    items = (await somebody.person.client.get("/api/v1/tokens")).json()["items"]
    return [each["name"] for each in items]


async def test_login_asks_and_keeps_a_token_that_it_does_not_show(ann: Somebody) -> None:
    with ann.terminal("login", **NOBODY) as terminal:
        await terminal.answer("User", ann.person.username)
        await terminal.answer("Password", PASSWORD)
        assert await terminal.ended() == 0
    assert f"Signed in as {ann.person.username}." in terminal.text
    token = json.loads(ann.login_file.read_text())["token"]
    assert token not in terminal.text
    assert PASSWORD not in terminal.text
    assert stat.S_IMODE(ann.login_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(ann.login_file.parent.stat().st_mode) == 0o700


async def test_commands_after_a_login_need_neither_address_nor_token(ann: Somebody) -> None:
    await sign_in(ann)
    await ann.create("notes")
    result = await ann.run("ws", "ls", CODEHUB_URL="", **NOBODY)
    assert (result.exit_code, "notes" in result.stdout) == (0, True)


async def test_a_wrong_password_is_told_and_nothing_is_kept(ann: Somebody) -> None:
    arguments = ("login", "--user", ann.person.username, "--password-stdin")
    result = await ann.run(*arguments, stdin="wrong horse battery\n", **NOBODY)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN
    assert "User name or password is wrong" in result.stderr
    assert not ann.login_file.exists()


async def test_a_second_login_replaces_the_first_token(ann: Somebody) -> None:
    await sign_in(ann)
    first = await token_names(ann)
    await sign_in(ann)
    assert await token_names(ann) == first


async def test_login_leaves_no_session_behind(ann: Somebody) -> None:
    await sign_in(ann)
    sessions = (await ann.person.client.get("/api/v1/sessions")).json()["items"]
    assert [each["current"] for each in sessions] == [True]


async def test_logout_revokes_the_token_and_forgets_it(ann: Somebody) -> None:
    before = await token_names(ann)
    await sign_in(ann)
    result = await ann.run("logout")
    assert (result.exit_code, result.stdout) == (0, f"Signed out of {ann.harness.api.base_url}.\n")
    assert not ann.login_file.exists()
    assert await token_names(ann) == before
    assert (await ann.run("logout")).stdout == "You are not signed in.\n"


async def test_the_token_of_the_environment_wins(ann: Somebody, admin: Somebody) -> None:
    await sign_in(ann)
    await admin.create("of the administrator")
    result = await ann.run("ws", "ls", CODEHUB_TOKEN=admin.variables["CODEHUB_TOKEN"])
    assert "of the administrator" in result.stdout


async def test_a_saved_token_is_sent_to_no_other_codehub(ann: Somebody) -> None:
    await sign_in(ann)
    other = f"http://127.0.0.1:{free_port()}"
    result = await ann.run("ws", "ls", "--url", other, **NOBODY)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN
    assert result.stderr.splitlines() == [
        f"You are not signed in to {other}, only to {ann.harness.api.base_url}.",
        f"Sign in with: codehub login --url {other}",
    ]


async def test_a_revoked_token_leads_to_a_new_login(ann: Somebody) -> None:
    result = await ann.run("ws", "ls", CODEHUB_TOKEN="codehub_pat_revoked")  # noqa: S106
    assert result.exit_code == ExitCode.NOT_SIGNED_IN
    assert result.stderr.splitlines()[-1] == "Sign in with: codehub login"


async def test_silence_is_told_with_where_the_address_came_from(ann: Somebody) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = await ann.run("ws", "ls", CODEHUB_URL=url)
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert f"CodeHub does not answer at {url}" in result.stderr
    assert "The address comes from CODEHUB_URL" in result.stderr


async def test_a_server_that_is_no_codehub_is_recognised(ann: Somebody, s3_server: S3Server) -> None:
    result = await ann.run("ws", "ls", "--url", s3_server.endpoint_url)
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert f"What answers at {s3_server.endpoint_url} is no CodeHub" in result.stderr


@pytest.mark.parametrize("url", ["codehub", "ftp://host", "http://", "http://host:port"])
async def test_an_address_that_is_none_is_a_wrong_usage(ann: Somebody, url: str) -> None:
    result = await ann.run("ws", "ls", "--url", url)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        ExitCode.USAGE,
        f"{url!r} is no address of a CodeHub.",
    )


async def test_a_token_that_is_none_is_a_wrong_usage(ann: Somebody) -> None:
    assert (await ann.run("ws", "ls", CODEHUB_TOKEN="schlüssel")).exit_code == ExitCode.USAGE  # noqa: S106


async def test_without_a_terminal_nobody_is_asked(ann: Somebody) -> None:
    result = await ann.run("login", **NOBODY)
    assert result.exit_code == ExitCode.USAGE
    assert "--password-stdin" in result.stderr


def test_the_codehub_of_this_machine_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataDir(tmp_path / "data")
    data.create()
    for name, value in {
        "XDG_CONFIG_HOME": tmp_path,
        "CODEHUB_DATA_DIR": data.root,
        "CODEHUB_URL": "",
    }.items():
        monkeypatch.setenv(name, str(value))
    assert find_address(None).url == DEFAULT_URL
    with lock_data_dir(data):
        write_state(data, (), {"CodeHub": "http://127.0.0.1:1234"})
        assert find_address(None).url == "http://127.0.0.1:1234"
