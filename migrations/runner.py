"""Runs the migrations: one migrator at a time, without making the application wait."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from codehub.db.session import connect
from migrations import m1
from migrations.errors import MigrationBlocked, MigrationInterrupted, MigrationRefused, UnknownRevision

logger = logging.getLogger(__name__)

MIGRATION_LOCK = 0x636F6465687562  # "codehub"
NAME = "codehub migrate"
LOCK_NOT_AVAILABLE = "55P03"
HEAD, BASE = "head", "base"
# CodeHub's processes name their connections.
IN_USE = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name LIKE 'codehub%' AND application_name NOT LIKE 'codehub migrate%'
"""

Step = Callable[[Config, str], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Patience:
    """How long to wait for locks and other migrators."""

    # Other transactions queue behind the migration, so it gives up soon, and before PostgreSQL looks for
    # deadlocks (after 1 s): the application must never become the victim.
    lock_timeout_seconds: float = 0.5
    attempts: int = 60
    pause_seconds: float = 1.0
    other_migrator_seconds: float = 3600.0
    poll_seconds: float = 0.2


PATIENT = Patience()


@dataclass(frozen=True)
class Change:
    """The revisions before and after; None means an empty database, M1 one without a stamp."""

    before: str | None
    after: str | None


async def upgrade(url: str, revision: str = HEAD, patience: Patience = PATIENT) -> Change:
    """Upgrade the schema to this revision; do nothing if it is there already."""
    return await _migrate(url, command.upgrade, revision, patience)


async def downgrade(url: str, revision: str, patience: Patience = PATIENT) -> Change:
    """Downgrade the schema to this revision. All CodeHub processes must be stopped."""
    return await _migrate(url, command.downgrade, revision, patience)


async def go_to(url: str, revision: str, patience: Patience = PATIENT) -> Change:
    """Upgrade or downgrade to this revision; refuse to downgrade while CodeHub runs."""
    target = find_revision(revision)
    path = [BASE, *revisions()]
    before = await current(url)
    if before in path and path.index(target) < path.index(before):
        await _refuse_while_in_use(url)
        await _refuse_losses(url, path[path.index(target) + 1 : path.index(before) + 1])
        return await downgrade(url, target, patience)
    return await upgrade(url, target, patience)


async def current(url: str) -> str | None:
    """Return the revision of the schema, or None for an empty database."""
    async with _connection(url) as connection:
        return await connection.run_sync(_revision)


def revisions() -> list[str]:
    """Return all revisions that this version knows, oldest first."""
    script = ScriptDirectory.from_config(_config())
    return [each.revision for each in reversed(list(script.walk_revisions()))]


def find_revision(name: str) -> str:
    """Return the revision with this name or unique prefix; `head` and `base` work too."""
    known = revisions()
    if name in (HEAD, BASE):
        return known[-1] if name == HEAD else BASE
    matching = [each for each in known if each.startswith(name)]
    if len(matching) != 1:
        raise UnknownRevision(name, [BASE, *known, HEAD])
    return matching[0]


async def _migrate(url: str, step: Step, revision: str, patience: Patience) -> Change:
    async with _only_migrator(url, patience):
        before = await current(url)
        adopting = partial(m1.adopt, known_revisions=revisions(), revision=before)
        adopted = await _until_not_blocked(url, adopting, patience)
        await _until_not_blocked(url, partial(_run, step=step, revision=revision), patience)
        return Change("M1" if adopted else before, await current(url))


async def _refuse_while_in_use(url: str) -> None:
    async with _connection(url) as connection:
        others = await connection.scalar(text(IN_USE))
    if others:
        raise MigrationRefused(
            f"CodeHub is connected to this database ({others} connections). Stop all CodeHub processes, "
            "then downgrade again."
        )


async def _refuse_losses(url: str, undone: list[str]) -> None:
    """Ask all revisions before the first one is undone, because each commits on its own."""
    script = ScriptDirectory.from_config(_config())
    async with _connection(url) as connection:
        for revision in reversed(undone):
            refuse = getattr(script.get_revision(revision).module, "refuse_downgrade", None)
            if refuse is not None:
                await connection.run_sync(refuse)


async def _until_not_blocked(url: str, work: Callable[[Connection], Result], patience: Patience) -> Result:
    """Try again while a lock is not available; every revision is atomic or can be run again."""
    for attempt in range(1, patience.attempts + 1):
        try:
            async with _connection(
                url, lock_timeout=f"{round(patience.lock_timeout_seconds * 1000)}ms"
            ) as connection:
                return await connection.run_sync(work)
        except (DBAPIError, PendingRollbackError) as error:
            _raise_unless_blocked(error)
            logger.info("A table is in use; attempt %d of %d.", attempt, patience.attempts)
        await asyncio.sleep(patience.pause_seconds)
    raise MigrationBlocked(
        f"A table stayed locked through {patience.attempts} attempts. End the long transaction that holds it "
        "(see pg_stat_activity), then run the migration again: it continues where it stopped."
    )


def _raise_unless_blocked(error: DBAPIError | PendingRollbackError) -> None:
    # After a lost connection Alembic's cleanup fails too, and that error arrives here.
    if isinstance(error, PendingRollbackError) or error.connection_invalidated:
        raise MigrationInterrupted(
            "The connection to PostgreSQL was lost; run the migration again: it continues where it stopped."
        ) from error
    if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
        raise error


def _run(connection: Connection, step: Step, revision: str) -> None:
    step(_config(connection), revision)


def _config(connection: Connection | None = None) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


@asynccontextmanager
async def _connection(url: str, lock_timeout: str = "0") -> AsyncIterator[AsyncConnection]:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: connect(
            url, application_name=NAME, lock_timeout=lock_timeout, statement_timeout="0"
        ),
        poolclass=NullPool,
    )
    async with engine.connect() as connection:
        yield connection


@asynccontextmanager
async def _only_migrator(url: str, patience: Patience) -> AsyncIterator[None]:
    """Hold the migration lock on a separate connection."""
    holder = await connect(url, application_name=f"{NAME} (lock)")
    try:
        async with asyncio.timeout(patience.other_migrator_seconds):
            # Poll: a session that waits inside pg_advisory_lock holds a snapshot, and CREATE INDEX
            # CONCURRENTLY of the other migrator would wait for that.
            while not await holder.fetchval("SELECT pg_try_advisory_lock($1)", MIGRATION_LOCK):  # noqa: ASYNC110
                await asyncio.sleep(patience.poll_seconds)
    except TimeoutError:
        await holder.close()
        raise MigrationBlocked("Another migration has been running for too long; check that one.") from None
    try:
        yield
    finally:
        await holder.close()
