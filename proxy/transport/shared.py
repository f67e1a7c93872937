"""What all connections of one proxy share: bounds, figures, and who is connected."""

import asyncio
import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

LATENCY_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


@dataclass(frozen=True)
class Limits:
    """How much of everything."""

    head_bytes: int = 32 * 1024
    fields: int = 100
    answer_head_bytes: int = 64 * 1024
    connections: int = 10_000
    connections_per_holder: int = 1_000
    # As many as a user's browsers and programs may have at work at once.
    resting_upstreams_per_key: int = 512


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


class Latencies:
    """How often something took how long: `counts` by upper bound, the last one for what took longer."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)


@dataclass
class Counters:
    """Figures for metrics: since the start, apart from what is open now."""

    connections: int = 0
    requests: int = 0
    tunnels: int = 0
    open_tunnels: int = 0
    streams: int = 0
    open_streams: int = 0
    bytes_from_clients: int = 0
    bytes_to_clients: int = 0
    upstream_failures: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    # From the request's head to the first byte of the answer.
    upstream_latencies: Latencies = field(default_factory=Latencies)


class Member(Protocol):
    """A connection, as far as the registry knows."""

    credential: str | None
    holder: str | None
    deadline: float

    def expire(self, now: float) -> None:
        """The deadline has passed."""

    def drain(self) -> None:
        """End at the next good moment."""

    def abort(self) -> None:
        """End now."""


class Registry:
    """Who is connected, with which credential and for which holder of credentials."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._members: set[Member] = set()
        self._by_credential: dict[str, set[Member]] = {}
        self._by_holder: dict[str, set[Member]] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._members)

    @property
    def credentials(self) -> set[str]:
        """Those with open connections."""
        return set(self._by_credential)

    def count(self, holder: str) -> int:
        return len(self._by_holder.get(holder, ()))

    def admit(self, member: Member) -> bool:
        """False if there are too many, or if we are about to leave; it is known either way."""
        self._members.add(member)
        self._empty.clear()
        return not self.draining and len(self._members) <= self._limits.connections

    def charge(self, member: Member, credential: str | None, holder: str | None) -> bool:
        """Count the connection for these, no more for its last ones; False if the holder has too many."""
        self._uncharge(member)
        if holder is not None:
            if self.count(holder) >= self._limits.connections_per_holder:
                return False
            self._by_holder.setdefault(holder, set()).add(member)
            member.holder = holder
        if credential is not None:
            self._by_credential.setdefault(credential, set()).add(member)
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
        if member.credential is not None:
            remove(self._by_credential, member.credential, member)
            member.credential = None
        if member.holder is not None:
            remove(self._by_holder, member.holder, member)
            member.holder = None


def remove(groups: dict[str, set[Member]], name: str, member: Member) -> None:
    """Leave no empty group behind: names come and go for ever."""
    group = groups[name]
    group.discard(member)
    if not group:
        del groups[name]
