"""The people of a game day: accounts with a password and a personal token each."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from codehub.db.session import Database
from codehub.services.passwords import Passwords, generate_password
from codehub.services.tokens import create_token
from codehub.services.users import add_user


@dataclass(frozen=True)
class User:
    """Somebody who may sign in, or come with a token."""

    user_id: str
    name: str
    token: str = field(repr=False)
    password: str = field(repr=False)


async def add_users(database: Database, count: int) -> tuple[User, ...]:
    passwords = Passwords()
    return tuple([await _add(database, passwords, f"player-{number + 1}") for number in range(count)])


async def _add(database: Database, passwords: Passwords, name: str) -> User:
    now = datetime.now(UTC)
    password = generate_password()
    account = await add_user(database, passwords, name, password, now=now)
    created = await create_token(database, account.id, "game day", expires_at=None, now=now)
    return User(str(account.id), name, created.token, password)
