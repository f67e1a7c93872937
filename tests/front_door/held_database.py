"""A database whose results a test can hold back, a log of its statements, and a manual clock."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from codehub.db.session import Database
from testkit.waiting import until


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class HeldDatabase(Database):
    """A real database whose results arrive when and in the order that the test wants."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.holding = False
        # One event for each held result, in the order in which the transactions ended.
        self.held: list[asyncio.Event] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        async with super().transaction() as session:
            yield session
        if self.holding:
            arrival = asyncio.Event()
            self.held.append(arrival)
            await arrival.wait()

    async def wait_until_held(self, count: int) -> None:
        """Wait until this many results are held."""

        async def enough() -> bool:
            return len(self.held) >= count

        await until(enough, f"{count} results are held")


@contextmanager
def recorded_statements(database: Database) -> Iterator[list[str]]:
    """Record the statements that the database receives."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        statements.append(statement)

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(database.engine.sync_engine, "before_cursor_execute", note)
