"""`codehub login` and `codehub logout`: create and revoke a personal token for this machine."""

import os
import socket
from typing import Annotated

import typer

from cli.client import Client
from cli.connection import (
    Address,
    SavedLogin,
    delete_login,
    find_address,
    load_login,
    login_file,
    save_login,
)
from cli.errors import CommandError, ExitCode
from cli.options import PasswordStdin, Url
from cli.terminal import print_note, read_first_line, require_terminal

MAX_TOKEN_NAME = 100


def login(
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", metavar="NAME", help="Your user name. Default: ask for it."),
    ] = None,
    password_stdin: PasswordStdin = False,
    days: Annotated[
        int, typer.Option("--days", metavar="DAYS", min=1, max=3650, help="How many days the token is valid.")
    ] = 90,
    url: Url = None,
) -> None:
    """Sign in: create a personal token and save it where only you can read it."""
    address = find_address(url)
    print_note(f"Signing in to {address.url}")
    _warn_if_unencrypted(address)
    if user is None:
        require_terminal("your user name", "Use --user and --password-stdin.")
        user = str(typer.prompt("User", err=True))
    password = read_first_line() if password_stdin else _ask_password()
    with Client(address) as client:
        created = _create_token(client, user, password, days)
    _revoke(load_login())
    _save(created)
    if os.environ.get("CODEHUB_TOKEN"):
        print_note("CODEHUB_TOKEN is set: commands use that token instead of this one.")
    typer.echo(f"Signed in as {created.username}. The token is in {login_file()}")


def logout() -> None:
    """Sign out: revoke the token of this machine and delete it."""
    saved = load_login()
    if saved is None:
        typer.echo("You are not signed in.")
        return
    revoked = _revoke(saved)
    delete_login()
    typer.echo(f"Signed out of {saved.url}.")
    if not revoked:
        print_note(
            "CodeHub did not respond, so the token is still valid. "
            "Revoke it in the dashboard, or wait until it expires."
        )


def _create_token(client: Client, user: str, password: str, days: int) -> SavedLogin:
    session = client.post("/login", {"username": user, "password": password})
    headers = {"X-CSRF-Token": session["csrf_token"]}
    form = {"name": f"codehub on {socket.gethostname()}"[:MAX_TOKEN_NAME], "expires_in_days": days}
    created = client.post("/tokens", form, **headers)
    # Only the token is needed from here on.
    client.post("/logout", **headers)
    return SavedLogin(client.address.url, session["user"]["username"], created["token"], created["id"])


def _save(login: SavedLogin) -> None:
    try:
        save_login(login)
    except OSError as error:
        _revoke(login)
        raise CommandError(
            f"Cannot write {login_file()} ({error.strerror}).",
            "Make its directory writable, or set XDG_CONFIG_HOME to another one.",
        ) from error


def _revoke(saved: SavedLogin | None) -> bool:
    """Revoke the token; return whether it is no longer valid."""
    if saved is None:
        return True
    try:
        with Client(Address(saved.url, "codehub login"), saved.token) as client:
            client.delete(f"/tokens/{saved.token_id}")
    except CommandError as error:
        # It was already revoked or has expired.
        return error.code in {ExitCode.NOT_SIGNED_IN, ExitCode.NOT_FOUND}
    return True


def _warn_if_unencrypted(address: Address) -> None:
    if not address.is_local and not address.is_encrypted:
        print_note("Warning: this connection is not encrypted (https), so others can read your password.")


def _ask_password() -> str:
    require_terminal("a password", "Use --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, err=True))
