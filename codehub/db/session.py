"""Connections to PostgreSQL, and short transactions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self, TypeAlias

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import PoolProxiedConnection, event, text
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

Connection: TypeAlias = asyncpg.Connection

IDLE_IN_TRANSACTION_SECONDS = 60


class DatabaseUnavailable(Exception):
    """Connecting failed; the message is for an operator and contains no password."""


def driver_url(url: str) -> str:
    """Convert an SQLAlchemy URL, which may contain `+asyncpg`, to one that asyncpg reads."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme.removesuffix('+asyncpg')}{separator}{rest}"


async def connect(
    url: str,
    *,
    connect_timeout_seconds: float = 10,
    application_name: str = "codehub",
    **server_settings: str,
) -> Connection:
    """Open one connection; the URL may contain everything that libpq allows, such as `sslmode`."""
    settings = {"application_name": application_name, "timezone": "UTC", **server_settings}
    try:
        return await asyncpg.connect(
            driver_url(url), timeout=connect_timeout_seconds, server_settings=settings
        )
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        reason = str(error) or type(error).__name__
        raise DatabaseUnavailable(f"PostgreSQL cannot be used: {reason}") from error


def create_engine(
    url: str,
    *,
    pool_size: int = 10,
    connect_timeout_seconds: float = 10,
    statement_timeout_seconds: float = 30,
) -> AsyncEngine:
    """Create a pool that waits neither for a connection nor for a statement forever."""

    async def open_connection() -> Connection:
        return await connect(
            url,
            connect_timeout_seconds=connect_timeout_seconds,
            statement_timeout=f"{round(statement_timeout_seconds * 1000)}ms",
            idle_in_transaction_session_timeout=f"{IDLE_IN_TRANSACTION_SECONDS}s",
        )

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=open_connection,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=statement_timeout_seconds,
        # Parameters contain people's texts and password hashes.
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: PoolProxiedConnection, _record: object, _proxy: object) -> None:
    """Replace all connections of the pool when the server has closed this one.

    SQLAlchemy's own check takes three round trips each time; the driver already knows.
    """
    driver_connection: Connection = connection.driver_connection
    if driver_connection.is_closed():
        raise InvalidatePoolError("the server closed the connection")


class Database:
    """One pool per process."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._sessions = async_sessionmaker(engine, expire_on_commit=False)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """Commit at the end, roll back on an error. Keep it short: no network inside."""
        async with self._sessions.begin() as session:
            yield session

    async def close(self) -> None:
        await self.engine.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


async def server_version(database: Database) -> str:
    """Return the version of PostgreSQL."""
    async with database.transaction() as session:
        return str(await session.scalar(text("SHOW server_version")))
