"""The proxy as a whole: listens, watches deadlines, leaves in good order."""

import asyncio
import logging

from proxy.transport.client_connection import ClientConnection
from proxy.transport.core import Core
from proxy.transport.routing import Router
from proxy.transport.shared import Counters, Limits, Timeouts

logger = logging.getLogger(__name__)

BACKLOG = 2048
MAX_SWEEP_SECONDS = 1.0
SWEEPS_PER_TIMEOUT = 4
# For streams of ours to release what they hold, once their clients are gone.
CLOSING_SECONDS = 5.0


class ProxyServer:
    """Make it in the event loop that it works in, preferably uvloop's. `scheme` is how clients reach it."""

    def __init__(
        self,
        router: Router,
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        scheme: str = "http",
    ) -> None:
        self._core = Core(router, limits or Limits(), timeouts or Timeouts(), scheme)
        self._servers: list[asyncio.Server] = []
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def counters(self) -> Counters:
        return self._core.counters

    @property
    def open_connections(self) -> int:
        return len(self._core.registry)

    @property
    def draining(self) -> bool:
        return self._core.registry.draining

    @property
    def resting_upstreams(self) -> int:
        return self._core.pool.count_resting()

    @property
    def credentials(self) -> set[str]:
        """Those with open connections."""
        return self._core.registry.credentials

    def count_connections(self, holder: str) -> int:
        return self._core.registry.count(holder)

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> int:
        """Accept connections; return the port, which is a free one if 0 was asked for."""
        server = await self._core.loop.create_server(
            lambda: ClientConnection(self._core), host, port, reuse_port=reuse_port, backlog=BACKLOG
        )
        self._servers.append(server)
        if self._sweeping is None:
            self._sweep()
        return int(server.sockets[0].getsockname()[1])

    def end_credential(self, credential: str) -> int:
        """End every connection that last used it, WebSockets included; return how many.

        A request that is being routed has not used it yet, so a router may still return a route for it
        afterwards: call this again, as long as it is among the `credentials`.
        """
        return self._core.registry.end_credential(credential)

    async def drain(self, deadline: float) -> None:
        """Stop accepting, let requests and WebSockets end for so many seconds, then end them."""
        for server in self._servers:
            server.close()
        self._core.registry.drain()
        try:
            async with asyncio.timeout(deadline):
                await self._core.registry.wait_until_empty()
        except TimeoutError:
            logger.info("%d connections did not end in time", self.open_connections)
            self._core.registry.abort()
            await self._core.registry.wait_until_empty()
        if self._core.tasks:
            await asyncio.wait(self._core.tasks, timeout=CLOSING_SECONDS)
        self._core.pool.close()
        if self._sweeping is not None:
            self._sweeping.cancel()

    def _sweep(self) -> None:
        core = self._core
        now = core.loop.time()
        try:
            core.registry.sweep(now)
            core.pool.prune(now)
        except Exception:
            logger.exception("a sweep failed; the next one goes on")
            core.counters.errors += 1
        self._sweeping = core.loop.call_later(self._sweep_seconds(), self._sweep)

    def _sweep_seconds(self) -> float:
        shortest: float = min(vars(self._core.timeouts).values())
        return min(MAX_SWEEP_SECONDS, shortest / SWEEPS_PER_TIMEOUT)
