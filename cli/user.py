"""`codehub user`: who may sign in."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, NoReturn, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy.exc import DBAPIError

from cli.database import NoDatabase, database_url
from codehub.db.session import Database, DatabaseUnavailable, create_engine
from codehub.services import users
from codehub.services.errors import RequestRefused, UsernameTaken, UserNotFound
from codehub.services.passwords import Passwords, check_password_rules, generate_password
from codehub.services.users import UserView
from codehub.settings import Settings, load_settings

FAILED = 1
PAGE = 500
# PostgreSQL's codes for a table and a column that do not exist.
SCHEMA_IS_OLD = ("42P01", "42703")
TIME = "%Y-%m-%d %H:%M"

T = TypeVar("T")

user = typer.Typer(no_args_is_help=True, help="Manage who may sign in.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
FromInput = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from the first line of the input.")
]
Generated = Annotated[bool, typer.Option("--generate", help="Make up a password and print it once.")]


@user.command()
def add(
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="Let the user manage the others.")] = False,
    password_stdin: FromInput = False,
    generate: Generated = False,
) -> None:
    """Add a user; asks for the password unless told where to get it."""
    # Before anybody is asked for a password in vain.
    _run(lambda database: _check_is_free(database, name))
    password = _new_password(from_input=password_stdin, generated=generate)
    role = "admin" if admin else "user"
    added = _run(
        lambda database: users.add_user(database, Passwords(), name, password, role=role, now=_now())
    )
    _report(f"Added {added.username} ({added.role}).", password if generate else None)


@user.command()
def passwd(name: Name, password_stdin: FromInput = False, generate: Generated = False) -> None:
    """Set a user's password; this ends every session of theirs, and a lock-out."""
    found = _run(lambda database: users.find_user(database, name))
    password = _new_password(from_input=password_stdin, generated=generate)
    _run(lambda database: users.set_password(database, Passwords(), found.id, password, now=_now()))
    _report(
        f"Changed the password of {found.username}; they have to sign in again.",
        password if generate else None,
    )


@user.command()
def disable(name: Name) -> None:
    """Shut a user out at once; workspaces and files stay."""

    async def change(database: Database) -> UserView:
        found = await users.find_user(database, name)
        return await users.disable_user(database, found.id, now=_now())

    disabled = _run(change)
    _report(f"Disabled {disabled.username}; every session and token of theirs is revoked.")


@user.command()
def enable(name: Name) -> None:
    """Let a disabled user sign in again."""

    async def change(database: Database) -> UserView:
        found = await users.find_user(database, name)
        return await users.enable_user(database, found.id, now=_now())

    enabled = _run(change)
    _report(f"Enabled {enabled.username}; they can sign in again.")


@user.command()
def ls(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """List the users by name."""
    found = _run(_all_users)
    if as_json:
        typer.echo(render_json(found))
    else:
        Console().print(render_table(found, _now()))


def render_table(found: Sequence[UserView], now: datetime) -> Table:
    table = Table("name", "role", "state", "since", box=box.SIMPLE_HEAD, show_edge=False)
    for each in found:
        table.add_row(Text(each.username), each.role, _state(each, now), each.created_at.strftime(TIME))
    return table


def render_json(found: Sequence[UserView]) -> str:
    return json.dumps([asdict(each) for each in found], indent=2, default=_as_text)


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _state(each: UserView, now: datetime) -> Text:
    if each.disabled_at is not None:
        return Text(f"disabled since {each.disabled_at.strftime(TIME)}", "yellow")
    if each.locked_until is not None and each.locked_until > now:
        return Text(f"locked until {each.locked_until.strftime(TIME)}", "red")
    return Text("enabled", "green")


async def _all_users(database: Database) -> list[UserView]:
    found: list[UserView] = []
    while page := await users.list_users(database, after=found[-1].username if found else None, limit=PAGE):
        found += page
    return found


async def _check_is_free(database: Database, name: str) -> None:
    users.check_username_rules(name)
    try:
        found = await users.find_user(database, name)
    except UserNotFound:
        return
    raise UsernameTaken(found.username)


def _new_password(*, from_input: bool, generated: bool) -> str:
    if from_input and generated:
        raise typer.BadParameter("--password-stdin and --generate exclude each other")
    if generated:
        return generate_password()
    password = _first_line() if from_input else _ask()
    try:
        check_password_rules(password)
    except RequestRefused as error:
        _fail(str(error))
    return password


def _first_line() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _ask() -> str:
    if not sys.stdin.isatty():
        _fail("There is no terminal to ask for a password; use --password-stdin or --generate.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt="The same again"))


def _run(work: Callable[[Database], Awaitable[T]]) -> T:
    """Do it on the database; what goes wrong as expected is a sentence and an exit code."""
    settings = load_settings()
    try:
        return asyncio.run(_with_database(settings, work))
    except (NoDatabase, RequestRefused) as error:
        _fail(str(error))
    except DatabaseUnavailable as error:
        _fail(f"{error}. See `codehub status`, or check CODEHUB_DATABASE_URL.")
    except DBAPIError as error:
        _fail(_explain(error))


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    timeout = settings.database.connect_timeout_seconds
    engine = create_engine(database_url(settings), pool_size=1, connect_timeout_seconds=timeout)
    async with Database(engine) as database:
        return await work(database)


def _explain(error: DBAPIError) -> str:
    if getattr(error.orig, "sqlstate", None) in SCHEMA_IS_OLD:
        return "The database lacks tables of this version; make them with `codehub migrate`."
    # Not the whole text: it has the statement, and with it the hash of a password.
    return f"The database did not do it: {error.orig}".partition("\n")[0]


def _report(message: str, password: str | None = None) -> None:
    if password is None:
        typer.echo(message)
        return
    # The password alone on the output, so that a script can take it.
    typer.echo(f"{message} The password is shown only now:", err=True)
    typer.echo(password)


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(FAILED)


def _now() -> datetime:
    return datetime.now(UTC)
