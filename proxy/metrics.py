"""What Prometheus reads of one proxy process: figures that are kept anyway, named when they are asked for."""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from proxy.activity import ActivityLog
from proxy.front_door import FrontDoor
from proxy.transport.server import ProxyServer
from proxy.transport.server_state import LATENCY_BOUNDS, Counters, Latencies

LOOPBACK = "127.0.0.1"


class ProxyCollector:
    """Reads plain numbers, so that counting costs nothing worth mentioning."""

    def __init__(self, server: ProxyServer, door: FrontDoor, book: ActivityLog) -> None:
        self._server = server
        self._door = door
        self._book = book

    def collect(self) -> Iterator[Metric]:
        counters = self._server.counters
        yield from _gauges(self._server, counters)
        yield from _counts(counters)
        yield _latencies(counters.upstream_latencies)
        yield _by_reason("upstream_failures", "Upstreams that failed, by how.", counters.upstream_failures)
        yield _by_reason("refused_heads", "Requests that the transport refused.", counters.refusals)
        yield _by_reason("answers", "Answers of the proxy's own, by what was told.", _answers(self._door))
        yield _count("wakes", "Workspaces started by requests.", self._door.hosting.lifecycle.wakes)
        yield _count("uses", "Times that somebody's work was noted.", self._book.uses_noted)
        yield _count(
            "use_flush_failures", "Flushes of use that Redis did not take.", self._book.flush_failures
        )
        yield GaugeMetricFamily(
            "codehub_proxy_uses_pending", "Workspaces whose use has not been handed on.", self._book.pending
        )


def serve_metrics(port: int, collector: ProxyCollector) -> None:
    """In a thread of its own, on the loopback interface only."""
    registry = CollectorRegistry()
    registry.register(collector)
    start_http_server(port, addr=LOOPBACK, registry=registry)


def _answers(door: FrontDoor) -> Counter[str]:
    together: Counter[str] = Counter()
    for outcomes in (door.outcomes, door.admission.outcomes, door.hosting.outcomes):
        # Copied in one step, because the proxy goes on counting in its own thread.
        together.update(dict(outcomes))
    return together


def _gauges(server: ProxyServer, counters: Counters) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "codehub_proxy_open_connections", "Connections of clients now.", server.open_connections
    )
    yield GaugeMetricFamily("codehub_proxy_open_websockets", "WebSockets now.", counters.open_tunnels)
    yield GaugeMetricFamily(
        "codehub_proxy_resting_upstreams",
        "Upstream connections that wait for work.",
        server.idle_upstreams,
    )


def _counts(counters: Counters) -> Iterator[Metric]:
    yield _count("connections", "Connections of clients.", counters.connections)
    yield _count("requests", "Requests.", counters.requests)
    yield _count("websockets", "Connections that became WebSockets.", counters.tunnels)
    yield _count("errors", "Mistakes of the proxy itself.", counters.errors)
    family = CounterMetricFamily("codehub_proxy_bytes", "Bytes of clients.", labels=["direction"])
    family.add_metric(["in"], counters.bytes_from_clients)
    family.add_metric(["out"], counters.bytes_to_clients)
    yield family


def _count(name: str, help_text: str, value: int) -> Metric:
    return CounterMetricFamily(f"codehub_proxy_{name}", help_text, value)


def _by_reason(name: str, help_text: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(f"codehub_proxy_{name}", help_text, labels=["reason"])
    for reason, value in list(values.items()):
        family.add_metric([reason], value)
    return family


def _latencies(latencies: Latencies) -> Metric:
    bounds = [*map(str, LATENCY_BOUNDS), "+Inf"]
    buckets = list(zip(bounds, accumulate(latencies.counts), strict=True))
    return HistogramMetricFamily(
        "codehub_proxy_upstream_seconds",
        "From a request's head to the first byte of its answer.",
        buckets=buckets,
        sum_value=latencies.total,
    )
