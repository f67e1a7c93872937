"""State that all connections of one server share."""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field

from proxy.transport.client_addresses import TrustedProxies
from proxy.transport.connection_registry import ConnectionRegistry
from proxy.transport.forwarded_head import ForwardedHeads
from proxy.transport.request_head import RequestHeadReader
from proxy.transport.response_head import ResponseHeadReader
from proxy.transport.routing import Router
from proxy.transport.upstream_pool import UpstreamPool

LATENCY_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


@dataclass(frozen=True)
class Limits:
    """Upper bounds on sizes and connections."""

    head_bytes: int = 32 * 1024
    fields: int = 100
    response_head_bytes: int = 64 * 1024
    connections: int = 10_000
    connections_per_address: int = 10_000
    connections_per_user: int = 1_000
    # A body may pause for `Timeouts.body` in total; every byte gains time at this rate.
    body_bytes_per_second: int = 1024
    # As many as one user's browsers and programs may need at once.
    idle_upstreams_per_key: int = 512


@dataclass(frozen=True)
class Timeouts:
    """Timeouts in seconds. `response` is for its first byte, `stream` for each pause after that."""

    head: float = 10
    idle: float = 75
    body: float = 60
    connect: float = 5
    response: float = 300
    stream: float = 3600
    tunnel: float = 900
    linger: float = 15
    # Node closes idle connections after five seconds; requests must not meet a closed connection.
    upstream_idle: float = 4
    upstream_age: float = 300


@dataclass(frozen=True)
class Edge:
    """How clients see the proxy: the scheme of its URLs, and default headers of its own responses.

    A response of the router can override a header. `X-Forwarded-For` is trusted only from `trusted_proxies`,
    which are addresses or networks.
    """

    scheme: str = "http"
    headers: tuple[tuple[str, str], ...] = ()
    trusted_proxies: tuple[str, ...] = ()


class Latencies:
    """A histogram: `counts` by upper bound, the last one for everything above."""

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
    """Figures for metrics: totals since the start, and how many are open now."""

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
    # From the request's head to the first byte of the response.
    upstream_latencies: Latencies = field(default_factory=Latencies)


class ServerState:
    """The parts of one server; create it in the server's event loop."""

    def __init__(self, router: Router, limits: Limits, timeouts: Timeouts, edge: Edge) -> None:
        self.loop = asyncio.get_running_loop()
        self.router = router
        self.limits = limits
        self.timeouts = timeouts
        self.default_headers = edge.headers
        self.trusted_proxies = TrustedProxies(edge.trusted_proxies)
        self.counters = Counters()
        self.registry = ConnectionRegistry(
            limits.connections, limits.connections_per_address, limits.connections_per_user
        )
        self.tasks: set[asyncio.Task[None]] = set()
        self.request_heads = RequestHeadReader(limits.head_bytes, limits.fields)
        self.forwarded_heads = ForwardedHeads(edge.scheme)
        self.response_heads = ResponseHeadReader(limits.response_head_bytes)
        self.pool = UpstreamPool(
            max_idle=limits.idle_upstreams_per_key,
            idle_timeout=timeouts.upstream_idle,
            max_age=timeouts.upstream_age,
            connect_timeout=timeouts.connect,
        )

    def start_task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start a task that the server waits for before it stops."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task
