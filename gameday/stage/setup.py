"""Prepare a stage: settings with short periods, accounts, and log files."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from codehub.db.session import Database
from codehub.embedded.free_ports import choose_ports
from codehub.services.audit import SYSTEM
from codehub.services.credentials import create_token
from codehub.services.passwords import Passwords, generate_password
from codehub.services.users import add_user

MAX_RUNNING_PER_USER = 2
# Variables that would connect to other servers or change the settings of the game.
FOREIGN_PREFIXES = ("CODEHUB_", "TTL_", "TEMPORAL_")
LOGGERS = ("codehub.embedded", "sqlalchemy")

# Short periods, so that a lot happens within minutes.
GAME_SETTINGS: Mapping[str, str] = {
    "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2",
    "CODEHUB_SWEEPS_TTL_SECONDS": "3",
    "CODEHUB_SWEEPS_GC_SECONDS": "10",
    "CODEHUB_GC_GRACE_SECONDS": "30",
    "CODEHUB_GC_UNDELETE_SECONDS": "40",
    "TTL_STANDBY_SECONDS": "15",
    "TTL_ARCHIVE_SECONDS": "20",
    "CODEHUB_LIMITS_MAX_RUNNING_PER_USER": str(MAX_RUNNING_PER_USER),
    "CODEHUB_PROXY_ACTIVITY_SECONDS": "1",
    # The simulated users send many requests.
    "CODEHUB_API_REQUESTS_PER_SECOND": "10000",
    "CODEHUB_API_SIGN_INS_PER_MINUTE": "10000",
    "CODEHUB_WORKER_SHUTDOWN_GRACE_SECONDS": "5",
    "CODEHUB_PROXY_DRAIN_SECONDS": "2",
    "CODEHUB_API_SHUTDOWN_GRACE_SECONDS": "2",
}


@dataclass(frozen=True)
class User:
    """An account with a password and a personal token."""

    user_id: str
    name: str
    token: str = field(repr=False)
    password: str = field(repr=False)


def make_settings(directory: Path, backend: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of the stage, with free ports."""
    ports = choose_ports(["api", "proxy"], {})
    return {
        **GAME_SETTINGS,
        "CODEHUB_DATA_DIR": str(directory),
        "CODEHUB_API_PORT": str(ports["api"]),
        "CODEHUB_PROXY_PORT": str(ports["proxy"]),
        # Simulated users are programs, and one address for everything is enough for them.
        "CODEHUB_WORKSPACES_ORIGINS": "path",
        **backend,
    }


def process_environment(settings: Mapping[str, str], programs: Path) -> dict[str, str]:
    """Return this process's environment without the variables of another CodeHub."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)}
    return {**inherited, **settings, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


async def add_users(database: Database, count: int) -> tuple[User, ...]:
    passwords = Passwords()
    return tuple([await _add_user(database, passwords, f"player-{number + 1}") for number in range(count)])


async def _add_user(database: Database, passwords: Passwords, name: str) -> User:
    now = datetime.now(UTC)
    password = generate_password()
    account = await add_user(database, passwords, name, password, by=SYSTEM, now=now)
    created = await create_token(database, account.id, "game day", expires_at=None, by=SYSTEM, now=now)
    return User(str(account.id), name, created.token, password)


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Send the log of the supervisor and the database pool to a file; the screen shows the game."""
    # The directory does not exist yet, so open the file with the first message.
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    with ExitStack() as cleanup:
        cleanup.callback(handler.close)
        for name in LOGGERS:
            cleanup.enter_context(_redirected(logging.getLogger(name), handler))
        yield


@contextmanager
def _redirected(logger: logging.Logger, handler: logging.Handler) -> Iterator[None]:
    propagated = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = propagated
        logger.removeHandler(handler)
