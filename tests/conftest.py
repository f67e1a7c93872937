"""Fixtures that need a real PostgreSQL, which starts when the first test asks for it; a summary of skips."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

from codehub.db.session import Database, create_engine
from migrations import runner
from testkit import postgres


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line for each reason how many tests were skipped for it."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """One server per test run. Where it cannot start, the tests fail: nothing is skipped."""
    with postgres.running_server() as server:
        yield server


@pytest.fixture(scope="session")
async def migrated_template(postgres_server: postgres.Server) -> AsyncIterator[str]:
    """The name of a database with today's schema, migrated once."""
    async with postgres.new_database(postgres_server) as url:
        await runner.upgrade(url)
        yield url.partition("@/")[2].partition("?")[0]


@pytest.fixture
async def empty_database_url(postgres_server: postgres.Server) -> AsyncIterator[str]:
    """A database without any table, for tests of migrations."""
    async with postgres.new_database(postgres_server) as url:
        yield url


@pytest.fixture
async def database_url(postgres_server: postgres.Server, migrated_template: str) -> AsyncIterator[str]:
    """A fresh database with today's schema."""
    async with postgres.new_database(postgres_server, migrated_template) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool on a fresh database with today's schema."""
    async with Database(create_engine(database_url, pool_size=20)) as opened:
        yield opened
