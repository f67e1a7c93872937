"""A time in which no new fault begins, for what can only be judged when nothing else goes wrong."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Calm:
    """Faults that go on already end as they would."""

    def __init__(self) -> None:
        self._keepers = 0
        self._over = asyncio.Event()
        self._over.set()

    @property
    def is_kept(self) -> bool:
        return self._keepers > 0

    async def wait_over(self) -> None:
        """Return when faults may begin."""
        await self._over.wait()

    @contextmanager
    def kept(self) -> Iterator[None]:
        self._keepers += 1
        self._over.clear()
        try:
            yield
        finally:
            self._keepers -= 1
            if not self._keepers:
                self._over.set()
