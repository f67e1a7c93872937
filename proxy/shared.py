"""What all connections of one proxy share: bounds, figures, and who is connected."""

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Limits:
    """How much of everything."""

    head_bytes: int = 32 * 1024
    fields: int = 100
    answer_head_bytes: int = 64 * 1024
    connections: int = 10_000
    connections_per_credential: int = 1_000
    resting_upstreams_per_key: int = 32


@dataclass(frozen=True)
class Timeouts:
    """How long, in seconds. An upstream's answer may take long to begin and longer to end."""

    head: float = 10
    idle: float = 75
    body: float = 60
    connect: float = 5
    answer: float = 300
    stream: float = 3600
    tunnel: float = 900
    linger: float = 15
    # Shorter than the five seconds after which Node closes, or requests would meet closed connections.
    upstream_idle: float = 4
    upstream_age: float = 300


@dataclass
class Counters:
    """Figures since the start, for metrics."""

    connections: int = 0
    requests: int = 0
    tunnels: int = 0
    bytes_from_clients: int = 0
    bytes_to_clients: int = 0
    upstream_failures: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    errors: int = 0


class Member(Protocol):
    """A connection, as far as the registry knows."""

    credential: str | None
    deadline: float

    def expire(self, now: float) -> None:
        """The deadline has passed."""

    def drain(self) -> None:
        """End at the next good moment."""

    def abort(self) -> None:
        """End now."""


class Registry:
    """Who is connected, and with which credential."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._members: set[Member] = set()
        self._by_credential: dict[str, set[Member]] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._members)

    def count(self, credential: str) -> int:
        return len(self._by_credential.get(credential, ()))

    def admit(self, member: Member) -> bool:
        """False if there are too many, or if we are about to leave; it is known either way."""
        self._members.add(member)
        self._empty.clear()
        return not self.draining and len(self._members) <= self._limits.connections

    def charge(self, member: Member, credential: str | None) -> bool:
        """Count the connection for this credential, no more for its last; False if it has too many."""
        self._uncharge(member)
        if credential is None:
            return True
        charged = self._by_credential.setdefault(credential, set())
        if len(charged) >= self._limits.connections_per_credential:
            return False
        charged.add(member)
        member.credential = credential
        return True

    def dismiss(self, member: Member) -> None:
        self._uncharge(member)
        self._members.discard(member)
        if not self._members:
            self._empty.set()

    async def wait_until_empty(self) -> None:
        await self._empty.wait()

    def end_credential(self, credential: str) -> int:
        """End every connection that last used it; return how many."""
        ended = list(self._by_credential.get(credential, ()))
        for member in ended:
            member.abort()
        return len(ended)

    def sweep(self, now: float) -> None:
        """One look at all deadlines is cheaper than timers that nearly every request would move."""
        for member in [each for each in self._members if each.deadline <= now]:
            # Whatever follows sets a new one.
            member.deadline = math.inf
            member.expire(now)

    def drain(self) -> None:
        self.draining = True
        for member in list(self._members):
            member.drain()

    def abort(self) -> None:
        for member in list(self._members):
            member.abort()

    def _uncharge(self, member: Member) -> None:
        if member.credential is None:
            return
        charged = self._by_credential.get(member.credential)
        if charged is not None:
            charged.discard(member)
            if not charged:
                del self._by_credential[member.credential]
        member.credential = None
