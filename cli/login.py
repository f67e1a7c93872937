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
from cli.password_session import password_session, read_password
from cli.terminal import can_prompt, print_note, read_first_line, require_terminal

MAX_TOKEN_NAME = 100


def login(
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", metavar="NAME", help="Your user name. Default: ask for it."),
    ] = None,
    password_stdin: PasswordStdin = False,
    token: Annotated[
        bool,
        typer.Option(
            "--token", help="Sign in with a token from the account page, for example with single sign-on."
        ),
    ] = False,
    days: Annotated[
        int, typer.Option("--days", metavar="DAYS", min=1, max=3650, help="How many days the token is valid.")
    ] = 90,
    url: Url = None,
) -> None:
    """Sign in: create a personal token and save it where only you can read it."""
    address = find_address(url)
    print_note(f"Signing in to {address.url}")
    _warn_if_unencrypted(address)
    created = _check_token(address) if token else _sign_in(address, user, days, password_stdin=password_stdin)
    _revoke(load_login())
    _save(created)
    if os.environ.get("CODEHUB_TOKEN"):
        print_note("CODEHUB_TOKEN is set: commands use that token instead of this one.")
    typer.echo(f"Signed in as {created.username}. The token is in {login_file()}")


def logout(
    everywhere: Annotated[
        bool,
        typer.Option("--everywhere", help="Also end all browser sessions and revoke all of your tokens."),
    ] = False,
) -> None:
    """Sign out: revoke the token of this machine and delete it."""
    saved = load_login()
    if saved is None:
        typer.echo("You are not signed in.")
        return
    if everywhere:
        with Client(Address(saved.url, "codehub login"), saved.token) as client:
            client.delete("/sessions", tokens=True)
        delete_login()
        typer.echo(f"Signed out of {saved.url} everywhere: all sessions are ended, all tokens are revoked.")
        return
    revoked = _revoke(saved)
    delete_login()
    typer.echo(f"Signed out of {saved.url}.")
    if not revoked:
        print_note(
            "CodeHub did not respond, so the token is still valid. "
            "Revoke it in the dashboard, or wait until it expires."
        )


def _sign_in(address: Address, user: str | None, days: int, *, password_stdin: bool) -> SavedLogin:
    with Client(address) as client:
        if user is None:
            _mention_single_sign_on(client)
            require_terminal("your user name", "Use --user and --password-stdin.")
            user = str(typer.prompt("User", err=True))
        return _create_token(client, user, read_password(from_input=password_stdin), days)


def _mention_single_sign_on(client: Client) -> None:
    provider = client.get("/sign-in")["provider"]
    if provider is not None:
        print_note(
            f"If you sign in with {provider}: create a token on {client.address.url}/account, "
            "then run: codehub login --token"
        )


def _check_token(address: Address) -> SavedLogin:
    """Read a token that was created in the browser, and ask CodeHub for its owner."""
    token = str(typer.prompt("Token", hide_input=True, err=True)) if can_prompt() else read_first_line()
    token = token.strip()
    if not (token and token.isascii() and token.isprintable()):
        raise CommandError(
            "This is not a token.", f"Create one on {address.url}/account.", code=ExitCode.USAGE
        )
    with Client(address, token) as client:
        session = client.get("/session")
    return SavedLogin(address.url, session["user"]["username"], token, session["id"])


def _create_token(client: Client, user: str, password: str, days: int) -> SavedLogin:
    form = {"name": f"codehub on {socket.gethostname()}"[:MAX_TOKEN_NAME], "expires_in_days": days}
    with password_session(client, user, password) as session:
        # The command needs every right of its user.
        scopes = ["workspaces", *(["admin"] if session.is_admin else [])]
        created = session.post("/tokens", {**form, "scopes": scopes})
    return SavedLogin(client.address.url, session.username, created["token"], created["id"])


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
