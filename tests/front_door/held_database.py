"""A database whose answers a test can hold back, and a clock that stands still."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from codehub.db.session import Database
from testkit.waiting import until


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class HeldDatabase(Database):
    """Answers of a real database, which arrive when and in which order the test likes."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.holding = False
        # Of each answer, in the order in which the questions were answered.
        self.on_their_way: list[asyncio.Event] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        async with super().transaction() as session:
            yield session
        if self.holding:
            arrival = asyncio.Event()
            self.on_their_way.append(arrival)
            await arrival.wait()

    async def wait_for(self, count: int) -> None:
        """Until so many answers are on their way."""

        async def so_many() -> bool:
            return len(self.on_their_way) >= count

        await until(so_many, f"{count} answers are on their way")


@contextmanager
def questions(database: Database) -> Iterator[list[str]]:
    """The statements that the database is asked in the block."""
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        asked.append(statement)

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(database.engine.sync_engine, "before_cursor_execute", note)
