"""Users, sessions and tokens."""

from typing import Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Form, Id, Name, OneTimeCode, Password, Timestamp, Username
from codehub.domain.scopes import Scope

Role = Literal["user", "admin"]


class Login(Form):
    """Username and password to sign in with."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"username": "ada", "password": "correct horse battery"}}
    )

    username: Username
    password: Password
    code: OneTimeCode | None = Field(
        None,
        description="Code from the authenticator app, or a recovery code, if the account needs one.",
    )


class Person(Document):
    """The signed-in user."""

    id: UUID
    username: str
    role: Role


class SessionView(Document):
    """The current session or token."""

    id: UUID = Field(description="The id of the session or the token.")
    user: Person
    credential: Literal["session", "token"]
    expires_at: Timestamp | None
    csrf_token: str | None = Field(
        description="Send it as X-CSRF-Token with changes; `null` for a token, which needs none."
    )
    unsafe_workspaces: bool = Field(
        description="Whether workspaces run without a sandbox, with all rights of CodeHub itself."
    )


class ConfirmPassword(Form):
    """The password of the signed-in user, entered again."""

    model_config = ConfigDict(json_schema_extra={"example": {"password": "correct horse battery"}})

    password: Password


class ChangePassword(Form):
    """A new password for the signed-in user."""

    current_password: Password
    new_password: Password


class SessionItem(Document):
    """A session of the signed-in user."""

    id: UUID
    created_at: Timestamp
    expires_at: Timestamp
    last_seen_at: Timestamp | None
    user_agent: str | None
    current: bool


class SessionList(Document):
    """The sessions of the signed-in user."""

    items: list[SessionItem]


class CreateToken(Form):
    """A new personal token for a program."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"name": "laptop", "expires_in_days": 90, "scopes": ["workspaces"]}}
    )

    name: Name
    expires_in_days: int | None = Field(
        90, ge=1, le=3650, description="`null` for a token that never expires."
    )
    scopes: list[Scope] = Field(
        [Scope.WORKSPACES],
        min_length=1,
        max_length=len(Scope),
        description="What it may do; every scope includes `read`, and `admin` is for administrators.",
    )
    workspaces: list[Id] | None = Field(
        None, min_length=1, max_length=100, description="Ids of the workspaces that the token is limited to."
    )


class TokenItem(Document):
    """A personal token, without the secret itself."""

    id: UUID
    name: str
    created_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Timestamp | None
    scopes: list[Scope] | None = Field(
        description="What it may do; `null` for tokens of older releases: all rights of the owner."
    )
    workspaces: list[UUID] | None = Field(
        description="The workspaces that it is limited to; `null` means all."
    )


class TokenList(Document):
    """The personal tokens of the signed-in user."""

    items: list[TokenItem]


class CreatedToken(TokenItem):
    """A new token with its secret, which is shown only once."""

    token: str


class UserItem(Document):
    """A user account."""

    id: UUID
    username: str
    role: Role
    created_at: Timestamp
    disabled_at: Timestamp | None
    locked_until: Timestamp | None


class UserPage(Document):
    """User accounts, by name."""

    items: list[UserItem]
    next_cursor: str | None


class CreateUser(Form):
    """A new user account."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"username": "grace", "password": "correct horse battery"}}
    )

    username: Username
    password: Password
    role: Role = "user"


class PatchUser(Form):
    """The fields of a user account to change."""

    model_config = ConfigDict(json_schema_extra={"example": {"disabled": True}})

    role: Role | None = None
    disabled: bool | None = None
    password: Password | None = None
