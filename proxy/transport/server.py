"""The server: listens, enforces deadlines, drains before it stops."""

import asyncio
import logging

from proxy.transport.client_connection import ClientConnection
from proxy.transport.routing import Router
from proxy.transport.server_state import Counters, Edge, Limits, ServerState, Timeouts

logger = logging.getLogger(__name__)

BACKLOG = 2048
MAX_CHECK_SECONDS = 1.0
CHECKS_PER_TIMEOUT = 4
# Streams have this long to release what they hold, once their clients are gone.
CLOSING_SECONDS = 5.0


class ProxyServer:
    """Forwards HTTP and WebSockets as its router says. Create it in its event loop, preferably uvloop's."""

    def __init__(
        self,
        router: Router,
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        edge: Edge | None = None,
    ) -> None:
        self._state = ServerState(router, limits or Limits(), timeouts or Timeouts(), edge or Edge())
        self._servers: list[asyncio.Server] = []
        self._next_check: asyncio.TimerHandle | None = None

    @property
    def counters(self) -> Counters:
        return self._state.counters

    @property
    def open_connections(self) -> int:
        return len(self._state.registry)

    @property
    def draining(self) -> bool:
        return self._state.registry.draining

    @property
    def idle_upstreams(self) -> int:
        return self._state.pool.count_idle()

    @property
    def credentials(self) -> set[str]:
        """Credentials with open connections."""
        return self._state.registry.credentials

    def count_connections(self, user: str) -> int:
        return self._state.registry.count(user)

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> int:
        """Accept connections; return the port. Port 0 picks a free one."""
        server = await self._state.loop.create_server(
            lambda: ClientConnection(self._state), host, port, reuse_port=reuse_port, backlog=BACKLOG
        )
        self._servers.append(server)
        if self._next_check is None:
            self._check_deadlines()
        return int(server.sockets[0].getsockname()[1])

    def end_credential(self, credential: str) -> int:
        """End every connection that last used the credential, including WebSockets; return how many.

        A request that is still being routed is not counted yet. So call this again while the credential is
        among the `credentials`.
        """
        return self._state.registry.end_credential(credential)

    async def drain(self, deadline: float) -> None:
        """Stop accepting connections; end those that are still open after `deadline` seconds."""
        for server in self._servers:
            server.close()
        self._state.registry.drain()
        try:
            async with asyncio.timeout(deadline):
                await self._state.registry.wait_until_empty()
        except TimeoutError:
            logger.info("%d connections did not end in time", self.open_connections)
            self._state.registry.abort()
            await self._state.registry.wait_until_empty()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=CLOSING_SECONDS)
        self._state.pool.close()
        if self._next_check is not None:
            self._next_check.cancel()

    def _check_deadlines(self) -> None:
        state = self._state
        now = state.loop.time()
        try:
            state.registry.expire(now)
            state.pool.prune(now)
        except Exception:
            logger.exception("a check of deadlines failed; the next one continues")
            state.counters.errors += 1
        self._next_check = state.loop.call_later(self._check_seconds(), self._check_deadlines)

    def _check_seconds(self) -> float:
        shortest: float = min(vars(self._state.timeouts).values())
        return min(MAX_CHECK_SECONDS, shortest / CHECKS_PER_TIMEOUT)
