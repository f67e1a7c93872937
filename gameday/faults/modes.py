"""What the fault proxy does to connections, and the mode that is active."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class PassThrough:
    """Forward all bytes unchanged."""


@dataclass(frozen=True)
class ErrorResponses:
    """Respond to requests with an error instead of forwarding them, and close the connection."""

    status: int


@dataclass(frozen=True)
class Slow:
    """Limit the bytes per second, in each direction of each connection."""

    bytes_per_second: int


@dataclass(frozen=True)
class CutConnections:
    """Cut a connection after this many bytes in both directions together."""

    after_bytes: int


@dataclass(frozen=True)
class Stalled:
    """Accept connections, but forward nothing until the mode ends."""


@dataclass(frozen=True)
class Down:
    """Cut every connection as soon as it is used."""


Mode: TypeAlias = PassThrough | ErrorResponses | Slow | CutConnections | Stalled | Down
PASS_THROUGH = PassThrough()


class ActiveMode:
    """The active mode and counts of its effects; of overlapping modes, the latest is active."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.changed = asyncio.Event()
        self.stalled_ports: Counter[int] = Counter()
        """How many chunks are held back, by the client's port."""
        self._modes: list[Mode] = []

    @property
    def mode(self) -> Mode:
        return self._modes[-1] if self._modes else PASS_THROUGH

    @contextmanager
    def inject(self, mode: Mode) -> Iterator[None]:
        """Activate the mode during the block."""
        self._modes.append(mode)
        self._notify()
        try:
            yield
        finally:
            # Equal modes may overlap; it does not matter which one is removed.
            self._modes.remove(mode)
            self._notify()

    async def stall(self, port: int) -> None:
        """Wait until connections are no longer stalled."""
        self.counts["chunks held back"] += 1
        self.stalled_ports[port] += 1
        try:
            while isinstance(self.mode, Stalled):
                await self.changed.wait()
        finally:
            self.stalled_ports[port] -= 1

    def _notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()
