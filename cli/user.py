"""`codehub user`: the accounts, changed directly in the database."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from getpass import getuser
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy.exc import DBAPIError

from cli.errors import CommandError
from cli.formatting import now
from cli.options import PasswordStdin
from cli.stack import NoDatabase, database_url
from cli.terminal import new_table, read_first_line
from codehub.db.session import Database, DatabaseUnavailable, create_engine
from codehub.providers import unsafe_workspaces
from codehub.services import totp, users
from codehub.services.audit import Actor
from codehub.services.errors import RequestRefused, UsernameTaken, UserNotFound
from codehub.services.passwords import Passwords, check_password_rules, generate_password
from codehub.services.users import UserView
from codehub.settings import Settings, load_settings

PAGE_SIZE = 500
# PostgreSQL's codes for a missing table and a missing column.
OUTDATED_SCHEMA = ("42P01", "42703")
TIME = "%Y-%m-%d %H:%M"

T = TypeVar("T")

user = typer.Typer(no_args_is_help=True, help="Manage user accounts.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
Generate = Annotated[bool, typer.Option("--generate", help="Generate a password and print it once.")]


@user.command()
def add(
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="Make the user an administrator.")] = False,
    password_stdin: PasswordStdin = False,
    generate: Generate = False,
) -> None:
    """Add a user; ask for the password unless an option provides it."""
    # Check before asking for a password.
    _run(lambda database: _require_unused(database, name))
    password = _new_password(from_input=password_stdin, generated=generate)
    role = "admin" if admin else "user"
    by = console_actor()
    single = unsafe_workspaces(load_settings())
    added = _run(
        lambda database: users.add_user(
            database, Passwords(), name, password, role=role, single=single, by=by, now=now()
        )
    )
    _report(f"Added {added.username} ({added.role}).", password if generate else None)


@user.command()
def passwd(name: Name, password_stdin: PasswordStdin = False, generate: Generate = False) -> None:
    """Set a user's password, end all of their sessions and tokens, and unlock the account."""
    found = _run(lambda database: users.find_user(database, name))
    password = _new_password(from_input=password_stdin, generated=generate)
    by = console_actor()
    _run(lambda database: users.set_password(database, Passwords(), found.id, password, by=by, now=now()))
    _report(
        f"Changed the password of {found.username}; all of their sessions and tokens are revoked.",
        password if generate else None,
    )


@user.command("remove-authenticator")
def remove_authenticator(name: Name) -> None:
    """Remove the authenticator app of a user who has lost it; the password alone is enough again."""
    found = _run(lambda database: users.find_user(database, name))
    by = console_actor()
    removed = _run(lambda database: totp.reset(database, found.id, by=by, now=now()))
    _report(
        f"Removed the authenticator app of {found.username}."
        if removed
        else f"{found.username} has no authenticator app.",
        None,
    )


@user.command()
def disable(name: Name) -> None:
    """Disable a user immediately; their workspaces stop, and their files are kept."""

    async def change(database: Database) -> UserView:
        found = await users.find_user(database, name)
        return await users.disable_user(database, found.id, by=console_actor(), now=now())

    disabled = _run(change)
    _report(
        f"Disabled {disabled.username}; all of their sessions and tokens are revoked, and "
        "their workspaces stop."
    )


@user.command()
def enable(name: Name) -> None:
    """Let a disabled user sign in again."""

    async def change(database: Database) -> UserView:
        found = await users.find_user(database, name)
        return await users.enable_user(database, found.id, by=console_actor(), now=now())

    enabled = _run(change)
    _report(f"Enabled {enabled.username}; they can sign in again.")


@user.command()
def ls(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the users by name."""
    found = _run(_all_users)
    if as_json:
        typer.echo(render_json(found))
    else:
        Console().print(render_table(found, now()))


def console_actor() -> Actor:
    """Return who runs this command on the server, for the audit log."""
    try:
        return Actor(f"console:{getuser()}")
    except (KeyError, OSError):
        # A container may run as a uid without a name.
        return Actor(f"console:{os.getuid()}")


def render_table(found: Sequence[UserView], at: datetime) -> Table:
    table = new_table("name", "role", "status", "created")
    for each in found:
        table.add_row(Text(each.username), each.role, _status(each, at), each.created_at.strftime(TIME))
    return table


def render_json(found: Sequence[UserView]) -> str:
    return json.dumps([asdict(each) for each in found], indent=2, default=_as_text)


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _status(each: UserView, at: datetime) -> Text:
    if each.disabled_at is not None:
        return Text(f"disabled since {each.disabled_at.strftime(TIME)}", "yellow")
    if each.locked_until is not None and each.locked_until > at:
        return Text(f"locked until {each.locked_until.strftime(TIME)}", "red")
    return Text("enabled", "green")


async def _all_users(database: Database) -> list[UserView]:
    found: list[UserView] = []
    while page := await users.list_users(
        database, after=found[-1].username if found else None, limit=PAGE_SIZE
    ):
        found += page
    return found


async def _require_unused(database: Database, name: str) -> None:
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
    password = read_first_line() if from_input else _ask_password()
    try:
        check_password_rules(password)
    except RequestRefused as error:
        raise CommandError(str(error)) from error
    return password


def _ask_password() -> str:
    if not sys.stdin.isatty():
        raise CommandError("There is no terminal to ask for a password. Use --password-stdin or --generate.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt="Repeat the password"))


def _run(work: Callable[[Database], Awaitable[T]]) -> T:
    """Do the work on the database; turn expected errors into a CommandError."""
    settings = load_settings()
    try:
        return asyncio.run(_with_database(settings, work))
    except (NoDatabase, RequestRefused) as error:
        raise CommandError(str(error)) from error
    except DatabaseUnavailable as error:
        raise CommandError(f"{error}. Check `codehub status` or CODEHUB_DATABASE_URL.") from error
    except DBAPIError as error:
        raise CommandError(_describe(error)) from error


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    timeout = settings.database.connect_timeout_seconds
    engine = create_engine(database_url(settings), pool_size=1, connect_timeout_seconds=timeout)
    async with Database(engine) as database:
        return await work(database)


def _describe(error: DBAPIError) -> str:
    if getattr(error.orig, "sqlstate", None) in OUTDATED_SCHEMA:
        return "The database schema is outdated. Update it with: codehub migrate"
    # Only the first line: the rest contains the statement with the hash of a password.
    return f"The database reported an error: {error.orig}".partition("\n")[0]


def _report(message: str, password: str | None = None) -> None:
    if password is None:
        typer.echo(message)
        return
    # Only the password goes to standard output, for scripts.
    typer.echo(f"{message} The password is shown only once:", err=True)
    typer.echo(password)
