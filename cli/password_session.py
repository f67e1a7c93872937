"""A short session, for requests that need the password."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from cli.client import Client, Document
from cli.errors import CommandError
from cli.terminal import read_first_line, require_terminal


@dataclass(frozen=True)
class PasswordSession:
    """A client that is signed in with a cookie."""

    client: Client
    username: str
    is_admin: bool
    headers: dict[str, str]

    def post(self, path: str, form: dict[str, Any]) -> Any:  # noqa: ANN401
        return self.client.post(path, form, **self.headers)


@contextmanager
def password_session(client: Client, user: str, password: str) -> Iterator[PasswordSession]:
    """Sign in with the password, and out again."""
    session = _open_session(client, {"username": user, "password": password})
    headers = {"X-CSRF-Token": session["csrf_token"]}
    user_of_session = session["user"]
    is_admin = user_of_session["role"] == "admin"
    yield PasswordSession(client, user_of_session["username"], is_admin, headers)
    client.post("/logout", **headers)


def _open_session(client: Client, credentials: dict[str, str]) -> Document:
    """Sign in, and ask for the code if the account has a second factor."""
    try:
        session: Document = client.post("/login", credentials)
    except CommandError as error:
        if error.api_code != "SECOND_FACTOR_REQUIRED":
            raise
        require_terminal("a code", "Create a token on your account page, and use: codehub login --token")
        code = str(typer.prompt("Code from your authenticator app, or a recovery code", err=True))
        session = client.post("/login", {**credentials, "code": code})
    return session


def read_password(*, from_input: bool) -> str:
    if from_input:
        return read_first_line()
    require_terminal("a password", "Use --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, err=True))
