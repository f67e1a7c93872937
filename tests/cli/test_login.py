"""Sign in and out; which token is sent to which CodeHub."""

import json
import stat
from pathlib import Path

import pyotp
import pytest

from cli.connection import DEFAULT_URL, find_address
from cli.errors import ExitCode
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import lock_data_dir, write_state
from testkit.processes import free_port
from testkit.seaweed import S3Server
from tests.api.harness import PASSWORD
from tests.cli.harness import CliUser

NO_TOKEN = {"CODEHUB_TOKEN": ""}


async def sign_in(user: CliUser) -> None:
    arguments = ("login", "--user", user.person.username, "--password-stdin")
    result = await user.run(*arguments, stdin=f"{PASSWORD}\n", **NO_TOKEN)
    assert result.exit_code == 0, result.output


async def token_names(user: CliUser) -> list[str]:
    items = (await user.person.client.get("/api/v1/tokens")).json()["items"]
    return [each["name"] for each in items]


async def test_login_prompts_and_saves_a_token_without_showing_it(ann: CliUser) -> None:
    with ann.terminal("login", **NO_TOKEN) as terminal:
        await terminal.reply("User", ann.person.username)
        await terminal.reply("Password", PASSWORD)
        assert await terminal.wait() == 0
    assert f"Signed in as {ann.person.username}." in terminal.text
    token = json.loads(ann.login_file.read_text())["token"]
    assert token not in terminal.text
    assert PASSWORD not in terminal.text
    assert stat.S_IMODE(ann.login_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(ann.login_file.parent.stat().st_mode) == 0o700


async def test_commands_after_a_login_need_no_url_or_token(ann: CliUser) -> None:
    await sign_in(ann)
    await ann.create("notes")
    result = await ann.run("ws", "ls", CODEHUB_URL="", **NO_TOKEN)
    assert (result.exit_code, "notes" in result.stdout) == (0, True)


async def test_after_a_wrong_password_nothing_is_saved(ann: CliUser) -> None:
    arguments = ("login", "--user", ann.person.username, "--password-stdin")
    result = await ann.run(*arguments, stdin="wrong horse battery\n", **NO_TOKEN)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN
    assert "User name or password is wrong" in result.stderr
    assert not ann.login_file.exists()


async def test_a_second_login_replaces_the_token(ann: CliUser) -> None:
    await sign_in(ann)
    first = await token_names(ann)
    await sign_in(ann)
    assert await token_names(ann) == first


async def test_login_leaves_no_session_behind(ann: CliUser) -> None:
    await sign_in(ann)
    sessions = (await ann.person.client.get("/api/v1/sessions")).json()["items"]
    assert [each["current"] for each in sessions] == [True]


async def test_logout_revokes_and_deletes_the_token(ann: CliUser) -> None:
    before = await token_names(ann)
    await sign_in(ann)
    result = await ann.run("logout")
    assert (result.exit_code, result.stdout) == (0, f"Signed out of {ann.harness.api.base_url}.\n")
    assert not ann.login_file.exists()
    assert await token_names(ann) == before
    assert (await ann.run("logout")).stdout == "You are not signed in.\n"


async def test_the_token_in_the_environment_takes_precedence(ann: CliUser, admin: CliUser) -> None:
    await sign_in(ann)
    await admin.create("workspace of the administrator")
    result = await ann.run("ws", "ls", CODEHUB_TOKEN=admin.variables["CODEHUB_TOKEN"])
    assert "workspace of the administrator" in result.stdout


async def test_a_saved_token_is_not_sent_to_another_codehub(ann: CliUser) -> None:
    await sign_in(ann)
    other = f"http://127.0.0.1:{free_port()}"
    result = await ann.run("ws", "ls", "--url", other, **NO_TOKEN)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN
    assert result.stderr.splitlines() == [
        f"You are not signed in to {other}, only to {ann.harness.api.base_url}.",
        f"Sign in with: codehub login --url {other}",
    ]


async def test_after_a_revoked_token_the_next_step_is_a_login(ann: CliUser) -> None:
    result = await ann.run("ws", "ls", CODEHUB_TOKEN="codehub_pat_revoked")  # noqa: S106
    assert result.exit_code == ExitCode.NOT_SIGNED_IN
    assert result.stderr.splitlines()[-1] == "Sign in with: codehub login"


async def test_an_unreachable_server_is_reported_with_the_source_of_its_address(ann: CliUser) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = await ann.run("ws", "ls", CODEHUB_URL=url)
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert f"Cannot reach CodeHub at {url}" in result.stderr
    assert "This address comes from CODEHUB_URL" in result.stderr


async def test_another_server_is_recognized(ann: CliUser, s3_server: S3Server) -> None:
    result = await ann.run("ws", "ls", "--url", s3_server.endpoint_url)
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert f"The server at {s3_server.endpoint_url} is not CodeHub" in result.stderr


@pytest.mark.parametrize("url", ["codehub", "ftp://host", "http://", "http://host:port"])
async def test_an_invalid_url_is_a_usage_error(ann: CliUser, url: str) -> None:
    result = await ann.run("ws", "ls", "--url", url)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        ExitCode.USAGE,
        f"Invalid URL: {url!r}.",
    )


async def test_an_invalid_token_is_a_usage_error(ann: CliUser) -> None:
    assert (await ann.run("ws", "ls", CODEHUB_TOKEN="schlüssel")).exit_code == ExitCode.USAGE  # noqa: S106


async def test_without_a_terminal_there_is_no_prompt(ann: CliUser) -> None:
    result = await ann.run("login", **NO_TOKEN)
    assert result.exit_code == ExitCode.USAGE
    assert "--password-stdin" in result.stderr


def test_the_codehub_on_this_machine_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_token_from_the_account_page_is_checked_and_saved(ann: CliUser) -> None:
    made = (await ann.person.client.post("/api/v1/tokens", json={"name": "from the browser"})).json()
    result = await ann.run("login", "--token", stdin=f"{made['token']}\n", **NO_TOKEN)
    assert result.exit_code == 0, result.output
    assert f"Signed in as {ann.person.username}." in result.stdout
    assert made["token"] not in result.output
    saved = json.loads(ann.login_file.read_text())
    assert (saved["token"], saved["token_id"]) == (made["token"], made["id"])
    assert (await ann.run("logout", **NO_TOKEN)).exit_code == 0
    assert "from the browser" not in await token_names(ann)


@pytest.mark.parametrize(("token", "code"), [("codehub_pat_wrong", 3), ("", 2), ("a\x1bb", 2)])
async def test_a_wrong_token_is_not_saved(ann: CliUser, token: str, code: int) -> None:
    result = await ann.run("login", "--token", stdin=f"{token}\n", **NO_TOKEN)
    assert result.exit_code == code
    assert not ann.login_file.exists()


async def test_login_asks_for_the_code_of_the_authenticator_app(ann: CliUser) -> None:
    added = (await ann.person.client.post("/api/v1/authenticator")).json()
    code = {"code": pyotp.TOTP(added["secret"]).now()}
    recovery = (await ann.person.client.post("/api/v1/authenticator/enable", json=code)).json()["codes"]
    with ann.terminal("login", "--user", ann.person.username, **NO_TOKEN) as terminal:
        await terminal.reply("Password", PASSWORD)
        await terminal.reply("recovery code", recovery[0])
        assert await terminal.wait() == 0
    arguments = ("login", "--user", ann.person.username, "--password-stdin")
    result = await ann.run(*arguments, stdin=f"{PASSWORD}\n", **NO_TOKEN)
    assert (result.exit_code, "codehub login --token" in result.stderr) == (ExitCode.USAGE, True)
