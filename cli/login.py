"""`codehub login|logout`: a personal token for this machine, which nobody sees."""

import os
import socket
import sys
from typing import Annotated

import typer

from cli.client import Client
from cli.connection import (
    Address,
    SavedLogin,
    find_address,
    forget_login,
    load_login,
    save_login,
    saved_login_file,
)
from cli.errors import ExitCode, Failed
from cli.options import Url
from cli.terminal import require_terminal, say

LONGEST_NAME = 100


def login(
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", metavar="NAME", help="Your user name; asked for unless given."),
    ] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from the first line of the input.")
    ] = False,
    days: Annotated[
        int, typer.Option("--days", metavar="DAYS", min=1, max=3650, help="How long the token is valid.")
    ] = 90,
    url: Url = None,
) -> None:
    """Sign in: makes a personal token for this machine and keeps it where only you can read it."""
    address = find_address(url)
    say(f"Signing in to {address.url}")
    _warn_if_readable(address)
    if user is None:
        require_terminal("who you are", "Say it with --user and --password-stdin.")
        user = str(typer.prompt("User", err=True))
    password = _first_line() if password_stdin else _ask_password()
    with Client(address) as client:
        made = _make_token(client, user, password, days)
    _revoke(load_login())
    _save(made)
    if os.environ.get("CODEHUB_TOKEN"):
        say("CODEHUB_TOKEN is set: commands use that token instead of this one.")
    typer.echo(f"Signed in as {made.username}. The token is in {saved_login_file()}")


def logout() -> None:
    """Sign out: revokes the token of this machine and forgets it."""
    saved = load_login()
    if saved is None:
        typer.echo("You are not signed in.")
        return
    revoked = _revoke(saved)
    forget_login()
    typer.echo(f"Signed out of {saved.url}.")
    if not revoked:
        say("CodeHub did not answer, so the token was not revoked: do it there, or let it expire.")


def _make_token(client: Client, user: str, password: str, days: int) -> SavedLogin:
    session = client.post("/login", {"username": user, "password": password})
    headers = {"X-CSRF-Token": session["csrf_token"]}
    form = {"name": f"codehub on {socket.gethostname()}"[:LONGEST_NAME], "expires_in_days": days}
    created = client.post("/tokens", form, **headers)
    # The session has done its work.
    client.post("/logout", **headers)
    return SavedLogin(client.address.url, session["user"]["username"], created["token"], created["id"])


def _save(made: SavedLogin) -> None:
    try:
        save_login(made)
    except OSError as error:
        _revoke(made)
        raise Failed(
            f"{saved_login_file()} cannot be written ({error.strerror}).",
            "Make its directory writable, or name another with XDG_CONFIG_HOME.",
        ) from error


def _revoke(saved: SavedLogin | None) -> bool:
    """Whether the token is no longer valid."""
    if saved is None:
        return True
    try:
        with Client(Address(saved.url, "codehub login"), saved.token) as client:
            client.delete(f"/tokens/{saved.token_id}")
    except Failed as failure:
        # It had been revoked already, or has expired.
        return failure.code in {ExitCode.NOT_SIGNED_IN, ExitCode.NOT_FOUND}
    return True


def _warn_if_readable(address: Address) -> None:
    if not address.is_here and not address.is_encrypted:
        say("Warning: this is not https, so anybody on the way can read your password.")


def _first_line() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _ask_password() -> str:
    require_terminal("for a password", "Give it with --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, err=True))
