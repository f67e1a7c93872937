"""The settings of the game day's CodeHub: short periods, so that much happens in minutes."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from codehub.db.session import Database
from codehub.embedded.free_ports import choose_ports
from codehub.services.credentials import create_token
from codehub.services.passwords import Passwords, generate_password
from codehub.services.users import add_user

MAX_RUNNING_PER_USER = 2
# What would lead to servers of somebody else, or change the rules of the game.
FOREIGN = ("CODEHUB_", "TTL_", "TEMPORAL_")

RULES: Mapping[str, str] = {
    "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2",
    "CODEHUB_SWEEPS_TTL_SECONDS": "3",
    "CODEHUB_SWEEPS_GC_SECONDS": "10",
    "CODEHUB_GC_GRACE_SECONDS": "30",
    "CODEHUB_GC_UNDELETE_SECONDS": "40",
    "TTL_STANDBY_SECONDS": "15",
    "TTL_ARCHIVE_SECONDS": "20",
    "CODEHUB_LIMITS_MAX_RUNNING_PER_USER": str(MAX_RUNNING_PER_USER),
    "CODEHUB_PROXY_ACTIVITY_SECONDS": "1",
    # Nobody shall be slowed down for being eager.
    "CODEHUB_API_REQUESTS_PER_SECOND": "10000",
    "CODEHUB_API_SIGN_INS_PER_MINUTE": "10000",
    "CODEHUB_WORKER_SHUTDOWN_GRACE_SECONDS": "5",
    "CODEHUB_PROXY_DRAIN_SECONDS": "2",
    "CODEHUB_API_SHUTDOWN_GRACE_SECONDS": "2",
}


def rules_of(directory: Path, backend: Mapping[str, str]) -> dict[str, str]:
    """All settings of our own, on ports that are free now."""
    ports = choose_ports(["api", "proxy"], {})
    return {
        **RULES,
        "CODEHUB_DATA_DIR": str(directory),
        "CODEHUB_API_PORT": str(ports["api"]),
        "CODEHUB_PROXY_PORT": str(ports["proxy"]),
        **backend,
    }


def inherited(rules: Mapping[str, str], programs: Path) -> dict[str, str]:
    """The environment of a process: this one's, without what belongs to another CodeHub."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**own, **rules, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


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


LOGGERS = ("codehub.embedded", "sqlalchemy")


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    # Opened late: the directory is made with the rest of the stack.
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    with ExitStack() as held:
        held.callback(handler.close)
        for name in LOGGERS:
            held.enter_context(_diverted(logging.getLogger(name), handler))
        yield


@contextmanager
def _diverted(logger: logging.Logger, handler: logging.Handler) -> Iterator[None]:
    propagated = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = propagated
        logger.removeHandler(handler)
