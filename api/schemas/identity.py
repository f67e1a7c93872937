"""People, sessions and tokens."""

from typing import Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Form, Name, Password, Timestamp, Username

Role = Literal["user", "admin"]


class Login(Form):
    """Who signs in."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"username": "ada", "password": "correct horse battery"}}
    )

    username: Username
    password: Password


class Person(Document):
    """Whoever is signed in."""

    id: UUID
    username: str
    role: Role


class SessionView(Document):
    """The present sign-in."""

    user: Person
    credential: Literal["session", "token"]
    expires_at: Timestamp | None
    csrf_token: str | None = Field(description="Send it as X-CSRF-Token with changes; only with a cookie.")


class ChangePassword(Form):
    """A new password for oneself."""

    current_password: Password
    new_password: Password


class SessionItem(Document):
    """One sign-in of mine."""

    id: UUID
    created_at: Timestamp
    expires_at: Timestamp
    last_seen_at: Timestamp | None
    user_agent: str | None
    current: bool


class SessionList(Document):
    """My sign-ins."""

    items: list[SessionItem]


class CreateToken(Form):
    """A personal token for a program."""

    model_config = ConfigDict(json_schema_extra={"example": {"name": "laptop", "expires_in_days": 90}})

    name: Name
    expires_in_days: int | None = Field(90, ge=1, le=3650, description="`null` for one that never expires.")


class TokenItem(Document):
    """One personal token; the token itself is stored nowhere."""

    id: UUID
    name: str
    created_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Timestamp | None


class TokenList(Document):
    """My personal tokens."""

    items: list[TokenItem]


class CreatedToken(TokenItem):
    """A new token, shown this once."""

    token: str


class UserItem(Document):
    """An account, as administrators see it."""

    id: UUID
    username: str
    role: Role
    created_at: Timestamp
    disabled_at: Timestamp | None
    locked_until: Timestamp | None


class UserPage(Document):
    """Accounts by name."""

    items: list[UserItem]
    next_cursor: str | None


class CreateUser(Form):
    """A new account."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"username": "grace", "password": "correct horse battery"}}
    )

    username: Username
    password: Password
    role: Role = "user"


class PatchUser(Form):
    """What to change of an account; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"example": {"disabled": True}})

    role: Role | None = None
    disabled: bool | None = None
    password: Password | None = None
