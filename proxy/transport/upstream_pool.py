"""Connections to upstreams: kept for the next request, the last used first."""

import asyncio
from typing import Protocol, cast

from codehub.ports import Upstream
from proxy.transport.routing import Forward

# A request that cannot be sent twice takes only a connection that has hardly rested: hardly ever closed.
FRESH_SECONDS = 1.0


class ResponseSink(Protocol):
    """Whoever waits for what an upstream says. Must contain its own errors."""

    def answer_received(self, data: bytes) -> None: ...

    def upstream_ended(self, error: Exception | None) -> None: ...

    def upstream_blocked(self) -> None: ...

    def upstream_ready(self) -> None: ...


class UpstreamConnection(asyncio.Protocol):
    """One connection; whatever it says while nobody has asked ends it."""

    __slots__ = ("key", "opened_at", "pool", "rested_since", "reused", "sink", "transport", "upstream")

    transport: asyncio.Transport

    def __init__(self, pool: "UpstreamPool", key: str, upstream: Upstream, now: float) -> None:
        self.pool = pool
        self.key = key
        self.upstream = upstream
        self.opened_at = now
        self.rested_since = now
        self.reused = False
        self.sink: ResponseSink | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Written at once, and blocked as soon as the kernel takes no more: buffers stay small.
        self.transport.set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        if self.sink is None:
            self.transport.abort()
        else:
            self.sink.answer_received(data)

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)

    def pause_writing(self) -> None:
        if self.sink is not None:
            self.sink.upstream_blocked()

    def resume_writing(self) -> None:
        if self.sink is not None:
            self.sink.upstream_ready()

    def _end(self, error: Exception | None) -> None:
        if self.sink is None:
            self.pool.forget(self)
        else:
            sink, self.sink = self.sink, None
            sink.upstream_ended(error)


class UpstreamPool:
    """Connections by pool key: open ones are taken from the end, where the youngest rest."""

    def __init__(self, max_resting: int, idle: float, age: float, connect: float) -> None:
        self._max_resting = max_resting
        self._idle = idle
        self._age = age
        self._connect = connect
        self._resting: dict[str, list[UpstreamConnection]] = {}

    def take(self, route: Forward, now: float, *, repeatable: bool) -> UpstreamConnection | None:
        """A connection that rests, or None. It may be stale: only a repeatable request gets an older one."""
        resting = self._resting.get(route.pool_key)
        rest = self._idle if repeatable else min(self._idle, FRESH_SECONDS)
        while resting:
            connection = resting.pop()
            # Instances move: a key may stand for another address than it did.
            same = connection.upstream is route.upstream or connection.upstream == route.upstream
            if same and self._is_good(connection, now, rest):
                connection.reused = True
                return connection
            connection.transport.close()
        return None

    async def connect(self, route: Forward) -> UpstreamConnection:
        """A new connection. Raise OSError or TimeoutError."""
        loop = asyncio.get_running_loop()
        upstream = route.upstream
        connection = UpstreamConnection(self, route.pool_key, upstream, loop.time())
        async with asyncio.timeout(self._connect):
            if upstream.host.startswith("/"):
                await loop.create_unix_connection(lambda: connection, upstream.host)
            else:
                await loop.create_connection(lambda: connection, upstream.host, upstream.port)
        return connection

    def give_back(self, connection: UpstreamConnection, now: float) -> None:
        """Keep it for the next request, or close it if there are enough or it has served its time."""
        connection.sink = None
        connection.rested_since = now
        resting = self._resting.setdefault(connection.key, [])
        if len(resting) >= self._max_resting or not self._is_good(connection, now, self._idle):
            connection.transport.close()
        else:
            resting.append(connection)

    def forget(self, connection: UpstreamConnection) -> None:
        """It ended while it rested; succeed if it did not rest."""
        resting = self._resting.get(connection.key)
        if resting is not None and connection in resting:
            resting.remove(connection)

    def prune(self, now: float) -> None:
        for key, resting in list(self._resting.items()):
            kept = []
            for connection in resting:
                if self._is_good(connection, now, self._idle):
                    kept.append(connection)
                else:
                    connection.transport.close()
            if kept:
                self._resting[key] = kept
            else:
                del self._resting[key]

    def close(self) -> None:
        for resting in self._resting.values():
            for connection in resting:
                connection.transport.close()
        self._resting.clear()

    def count_resting(self) -> int:
        return sum(map(len, self._resting.values()))

    def _is_good(self, connection: UpstreamConnection, now: float, rest: float) -> bool:
        return (
            now - connection.rested_since < rest
            and now - connection.opened_at < self._age
            and not connection.transport.is_closing()
        )
