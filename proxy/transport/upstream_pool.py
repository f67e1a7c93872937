"""Connections to upstreams, kept for the next request."""

import asyncio
import socket
from typing import TYPE_CHECKING, NamedTuple, cast

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Collect, Forward, Response, Router, Stream, Upstream
from proxy.transport.unix_sockets import connectable

if TYPE_CHECKING:
    from proxy.transport.server_state import Counters
    from proxy.transport.upstream_exchange import UpstreamExchange

# A request that cannot be retried gets only connections this fresh: the upstream rarely closes those.
FRESH_SECONDS = 1.0
# A UNIX socket refuses connections beyond its backlog, so retry.
BACKLOG_SECONDS = 0.02


class UpstreamConnection(asyncio.Protocol):
    """One connection to an upstream; data without a request ends it."""

    __slots__ = ("exchange", "idle_since", "key", "opened_at", "pool", "reused", "transport", "upstream")

    transport: asyncio.Transport

    def __init__(self, pool: "UpstreamPool", key: str, upstream: Upstream, now: float) -> None:
        self.pool = pool
        self.key = key
        self.upstream = upstream
        self.opened_at = now
        self.idle_since = now
        self.reused = False
        self.exchange: UpstreamExchange | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Pause as soon as the kernel takes no more, to keep buffers small.
        self.transport.set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        if self.exchange is None:
            self.transport.abort()
        else:
            self.exchange.response_received(data)

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)

    def pause_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.upstream_blocked()

    def resume_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.upstream_ready()

    def _end(self, error: Exception | None) -> None:
        if self.exchange is None:
            self.pool.discard(self)
        else:
            exchange, self.exchange = self.exchange, None
            exchange.upstream_ended(error)


class UpstreamPool:
    """Idle connections by pool key; the most recently used one is taken first."""

    def __init__(self, max_idle: int, idle_timeout: float, max_age: float, connect_timeout: float) -> None:
        self._max_idle = max_idle
        self._idle_timeout = idle_timeout
        self._max_age = max_age
        self._connect_timeout = connect_timeout
        self._idle: dict[str, list[UpstreamConnection]] = {}

    def acquire(self, route: Forward, now: float, *, retryable: bool) -> UpstreamConnection | None:
        """Return an idle connection or None. Old ones may be stale, so they need a retryable request."""
        idle = self._idle.get(route.pool_key)
        timeout = self._idle_timeout if retryable else min(self._idle_timeout, FRESH_SECONDS)
        while idle:
            connection = idle.pop()
            # Instances move, so the same key may belong to another address now.
            same = connection.upstream is route.upstream or connection.upstream == route.upstream
            if same and self._is_usable(connection, now, timeout):
                connection.reused = True
                return connection
            connection.transport.close()
        return None

    async def connect(self, route: Forward) -> UpstreamConnection:
        """Open a new connection. Raise OSError or TimeoutError."""
        loop = asyncio.get_running_loop()
        upstream = route.upstream
        connection = UpstreamConnection(self, route.pool_key, upstream, loop.time())
        async with asyncio.timeout(self._connect_timeout):
            if upstream.host.startswith("/"):
                await _connect_unix(connection, upstream.host)
            else:
                await loop.create_connection(lambda: connection, upstream.host, upstream.port)
        if upstream.preamble:
            connection.transport.write(upstream.preamble)
        return connection

    def release(self, connection: UpstreamConnection, now: float) -> None:
        """Keep the connection for the next request; close it if there are enough or it is too old."""
        connection.exchange = None
        connection.idle_since = now
        idle = self._idle.setdefault(connection.key, [])
        if len(idle) >= self._max_idle or not self._is_usable(connection, now, self._idle_timeout):
            connection.transport.close()
        else:
            idle.append(connection)

    def discard(self, connection: UpstreamConnection) -> None:
        """Forget a connection that has ended; succeed if it was not idle."""
        idle = self._idle.get(connection.key)
        if idle is not None and connection in idle:
            idle.remove(connection)

    def prune(self, now: float) -> None:
        """Close connections that have been idle or open for too long."""
        for key, idle in list(self._idle.items()):
            kept = []
            for connection in idle:
                if self._is_usable(connection, now, self._idle_timeout):
                    kept.append(connection)
                else:
                    connection.transport.close()
            if kept:
                self._idle[key] = kept
            else:
                del self._idle[key]

    def close(self) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.transport.close()
        self._idle.clear()

    def count_idle(self) -> int:
        return sum(map(len, self._idle.values()))

    def _is_usable(self, connection: UpstreamConnection, now: float, idle_timeout: float) -> bool:
        return (
            now - connection.idle_since < idle_timeout
            and now - connection.opened_at < self._max_age
            and not connection.transport.is_closing()
        )


async def _connect_unix(connection: UpstreamConnection, path: str) -> None:
    loop = asyncio.get_running_loop()
    with connectable(path) as address:
        # No event says when there is room again.
        while (opened := _open_unix(address)) is None:  # noqa: ASYNC110
            await asyncio.sleep(BACKLOG_SECONDS)
    await loop.create_unix_connection(lambda: connection, sock=opened)


def _open_unix(address: str) -> socket.socket | None:
    """Connect, or return None if the backlog is full, which event loops mistake for success."""
    opened = socket.socket(socket.AF_UNIX)
    opened.setblocking(False)
    try:
        opened.connect(address)
    except BlockingIOError:
        opened.close()
        return None
    except OSError:
        opened.close()
        raise
    return opened


class Connected(NamedTuple):
    """A connection, and the route that it was opened for."""

    route: Forward
    connection: UpstreamConnection


async def connect_upstream(
    head: RequestHead, route: Forward, pool: UpstreamPool, router: Router, counters: "Counters"
) -> Connected | Response | Stream | Collect:
    """Connect to the upstream; if that fails, route the request again: the instance may have moved."""
    if (connection := await _try_connect(route, pool, counters)) is not None:
        return Connected(route, connection)
    routed = await router.route_again(head, route)
    if not isinstance(routed, Forward):
        return routed
    if (connection := await _try_connect(routed, pool, counters)) is not None:
        return Connected(routed, connection)
    return router.unreachable(head, routed)


async def _try_connect(route: Forward, pool: UpstreamPool, counters: "Counters") -> UpstreamConnection | None:
    try:
        return await pool.connect(route)
    except (OSError, TimeoutError):
        counters.upstream_failures["connect"] += 1
        return None
