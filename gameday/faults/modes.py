"""What a fault proxy can do to the connections that go through it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Passing:
    """Bytes go through as they come."""


@dataclass(frozen=True)
class Answering:
    """A request is answered with an error instead of being passed on, and its connection closed."""

    status: int


@dataclass(frozen=True)
class Slow:
    """Bytes go through, but only so many a second each way of each connection."""

    bytes_per_second: int


@dataclass(frozen=True)
class Cutting:
    """A connection is cut once this many bytes have gone through it, whichever way they went."""

    after_bytes: int


@dataclass(frozen=True)
class Silent:
    """Connections are accepted, and nothing goes through until it is over."""


@dataclass(frozen=True)
class Away:
    """A connection is cut as soon as anything is said on it."""


Mode: TypeAlias = Passing | Answering | Slow | Cutting | Silent | Away
PASSING = Passing()


class Troubles:
    """What goes wrong right now, and how often something did; of several at a time, the latest counts."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.changed = asyncio.Event()
        self.held_ports: Counter[int] = Counter()
        """The client ports of connections with something held back, and how many pieces."""
        self._modes: list[Mode] = []

    @property
    def mode(self) -> Mode:
        return self._modes[-1] if self._modes else PASSING

    @contextmanager
    def during(self, mode: Mode) -> Iterator[None]:
        """Misbehave for the length of the block."""
        self._modes.append(mode)
        self._tell()
        try:
            yield
        finally:
            # Two that are equal may overlap: either may go.
            self._modes.remove(mode)
            self._tell()

    async def hold_back(self, port: int) -> None:
        """Return when connections are no longer silent."""
        self.counts["pieces held back"] += 1
        self.held_ports[port] += 1
        try:
            while isinstance(self.mode, Silent):
                await self.changed.wait()
        finally:
            self.held_ports[port] -= 1

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()
