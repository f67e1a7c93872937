"""`codehub user` as an operator uses it, on the database that the settings name or that of `codehub up`."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from codehub.db.session import Database
from codehub.embedded.child_process import ChildState, ChildStatus
from codehub.embedded.data_dir import DataDir, load_or_create_credentials, write_private
from codehub.embedded.state import lock_data_dir, write_state
from codehub.services import users
from codehub.services.errors import SignInRefused
from codehub.services.passwords import Passwords
from testkit.rows import BY, NOW
from tests.codehub_command import CODEHUB
from tests.identities import PASSWORD, WRONG, add, enter, failures_of

NEW = "another battery"

Run = Callable[..., Coroutine[Any, Any, Result]]


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str | None]:
    """Nothing configured but a directory where nothing runs."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("CODEHUB_")}
    return {**unset, "CODEHUB_DATA_DIR": str(tmp_path / "data"), "COLUMNS": "120"}


@pytest.fixture
def codehub(variables: dict[str, str | None], database_url: str) -> Run:
    """Run `codehub user` on the test's database, in a thread because it has an event loop of its own."""

    async def run(*arguments: str, stdin: str = "", **changed: str | None) -> Result:
        env = {**variables, "CODEHUB_DATABASE_URL": database_url, **changed}
        return await asyncio.to_thread(CliRunner().invoke, app, ("user", *arguments), env=env, input=stdin)

    return run


async def may_enter(database: Database, username: str, password: str) -> bool:
    try:
        await enter(database, username, password, passwords=Passwords())
    except SignInRefused:
        return False
    return True


async def test_user_is_added_with_the_password_of_the_input(codehub: Run, database: Database) -> None:
    result = await codehub("add", "ann", "--password-stdin", stdin=f"{PASSWORD}\nnot this\n")
    assert (result.exit_code, result.output) == (0, "Added ann (user).\n")
    assert await may_enter(database, "ann", PASSWORD)


async def test_generated_password_is_alone_on_the_output(codehub: Run, database: Database) -> None:
    result = await codehub("add", "ann", "--admin", "--generate")
    assert result.exit_code == 0
    assert result.stderr == "Added ann (admin). The password is shown only once:\n"
    assert await may_enter(database, "ann", result.stdout.removesuffix("\n"))
    assert (await users.find_user(database, "ann")).role == "admin"


async def test_password_is_changed_and_the_lock_is_over(codehub: Run, database: Database) -> None:
    await add(database)
    for _ in range(5):
        assert not await may_enter(database, "ann", WRONG)
    result = await codehub("passwd", "Ann", "--password-stdin", stdin=NEW)
    assert (result.exit_code, result.output.split(";")[0]) == (0, "Changed the password of ann")
    assert (await failures_of(database)).count == 0
    assert await may_enter(database, "ann", NEW)


async def test_generated_password_replaces_the_old_one(codehub: Run, database: Database) -> None:
    await add(database)
    result = await codehub("passwd", "ann", "--generate")
    assert await may_enter(database, "ann", result.stdout.strip())


async def test_user_is_disabled_and_enabled(codehub: Run, database: Database) -> None:
    await add(database)
    assert (await codehub("disable", "ann")).output.startswith("Disabled ann;")
    assert not await may_enter(database, "ann", PASSWORD)
    assert (await codehub("enable", "ann")).output.startswith("Enabled ann;")
    assert await may_enter(database, "ann", PASSWORD)


async def test_users_are_listed(codehub: Run, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.user.PAGE_SIZE", 2)
    for name in ("cid", "ann", "bob"):
        await add(database, name)
    await add(database, "root", "admin")
    await users.disable_user(database, (await users.find_user(database, "bob")).id, by=BY, now=NOW)
    table = [line.split() for line in (await codehub("ls")).output.splitlines()]
    assert table[2:] == [
        ["ann", "user", "enabled", "2026-07-01", "12:00"],
        ["bob", "user", "disabled", "since", "2026-07-01", "12:00", "2026-07-01", "12:00"],
        ["cid", "user", "enabled", "2026-07-01", "12:00"],
        ["root", "admin", "enabled", "2026-07-01", "12:00"],
    ]
    listed = json.loads((await codehub("ls", "--json")).output)
    assert [each["username"] for each in listed] == ["ann", "bob", "cid", "root"]
    assert listed[1] == {
        "id": str((await users.find_user(database, "bob")).id),
        "username": "bob",
        "role": "user",
        "created_at": NOW.isoformat(),
        "disabled_at": NOW.isoformat(),
        "locked_until": None,
    }


@pytest.mark.parametrize(
    ("arguments", "stdin", "sentence"),
    [
        (["add", "ANN", "--generate"], "", "There is already a user ann"),
        (["add", "an n", "--generate"], "", "Choose a user name of 1 to 64"),
        (["add", "bob", "--password-stdin"], "short\n", "Choose a password of 8 to 1024"),
        (["add", "bob", "--password-stdin"], "", "Choose a password of 8 to 1024"),
        (["add", "bob"], PASSWORD, "Use --password-stdin or --generate"),
        (["passwd", "bob", "--generate"], "", "There is no such user"),
        (["disable", "bob"], "", "There is no such user"),
        (["enable", "bob"], "", "There is no such user"),
        (["disable", "ann"], "", "This is the last administrator"),
    ],
)
async def test_what_cannot_be_done_is_a_sentence(
    codehub: Run, database: Database, arguments: list[str], stdin: str, sentence: str
) -> None:
    await add(database, role="admin")
    result = await codehub(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(sentence) or sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


async def test_password_comes_from_one_place(codehub: Run) -> None:
    result = await codehub("add", "ann", "--generate", "--password-stdin", stdin=PASSWORD)
    assert result.exit_code == 2
    assert "exclude each other" in result.stderr


async def test_password_is_never_an_argument(codehub: Run) -> None:
    assert (await codehub("add", "ann", PASSWORD)).exit_code == 2
    assert (await codehub("passwd", "ann", PASSWORD)).exit_code == 2


async def test_terminal_is_asked_twice_and_shows_nothing(
    variables: dict[str, str | None], database: Database, database_url: str
) -> None:
    configured = {**os.environ, **variables, "CODEHUB_DATABASE_URL": database_url}
    environment = {name: value for name, value in configured.items() if value is not None}
    exit_code, shown = await asyncio.to_thread(_on_a_terminal, environment, "user", "add", "ann")
    assert exit_code == 0
    assert "Added ann (user)." in shown
    assert PASSWORD not in shown
    assert await may_enter(database, "ann", PASSWORD)


def _on_a_terminal(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    terminal, inner = os.openpty()
    with subprocess.Popen(
        (CODEHUB, *arguments),
        env=environment,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
    ) as process:
        os.close(inner)
        # With the blank, which comes when nothing is shown any more; what is typed before that is lost.
        shown = _converse(terminal, ["Password: ", "Repeat the password: "])
    os.close(terminal)
    return process.returncode, shown


def _converse(terminal: int, questions: list[str]) -> str:
    """Answer each question with the password; what was on the screen in the end."""
    shown = ""
    while part := _read(terminal):
        shown += part
        if questions and questions[0] in shown:
            del questions[0]
            os.write(terminal, f"{PASSWORD}\n".encode())
    return shown


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 1024).decode()
    except OSError:  # how Linux says that the other side has gone
        return ""


async def test_without_any_database_it_says_what_to_do(codehub: Run, tmp_path: Path) -> None:
    result = await codehub("ls", CODEHUB_DATABASE_URL=None)
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"CodeHub is not running on {tmp_path / 'data'}. Start it with `codehub up`"
    )
    assert not (tmp_path / "data").exists()


async def test_unreachable_database_causes_no_traceback(codehub: Run) -> None:
    result = await codehub("ls", CODEHUB_DATABASE_URL="postgresql://ann:secret@127.0.0.1:1/codehub")
    assert result.exit_code == 1
    assert result.stderr.startswith("PostgreSQL cannot be used: ")
    assert "codehub status" in result.stderr
    assert "secret" not in result.stderr


async def test_database_without_tables_is_to_be_migrated(codehub: Run, empty_database_url: str) -> None:
    result = await codehub("ls", CODEHUB_DATABASE_URL=empty_database_url)
    assert result.exit_code == 1
    assert "codehub migrate" in result.stderr


async def test_wrong_settings_change_nothing_about_who_reports_them(codehub: Run) -> None:
    result = await codehub("ls", CODEHUB_DATABASE_URL="mysql://somewhere")
    assert result.exit_code == 1
    assert type(result.exception).__name__ == "SettingsError"


async def test_running_stack_leads_to_its_database(codehub: Run, tmp_path: Path) -> None:
    """Nobody listens on the port, but it is the stack's own that is asked."""
    data = DataDir(tmp_path / "data")
    data.create()
    load_or_create_credentials(data.credentials)
    write_private(data.ports, json.dumps({"ports": {"postgres": 1}}))
    with lock_data_dir(data):
        write_state(data, [ChildStatus("postgres", "PostgreSQL", "", ChildState.RUNNING, NOW)], {})
        result = await codehub("ls", CODEHUB_DATABASE_URL=None)
        assert "PostgreSQL cannot be used" in result.stderr
        assert "'127.0.0.1', 1" in result.stderr
        write_state(data, [ChildStatus("postgres", "PostgreSQL", "", ChildState.EXTERNAL, NOW)], {})
        result = await codehub("ls", CODEHUB_DATABASE_URL=None)
        assert "Set it for this command too" in result.stderr
