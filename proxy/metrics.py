"""Prometheus metrics of one proxy process."""

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


class ProxyCollector:
    """Reads plain counters when scraped, so that counting costs almost nothing."""

    def __init__(self, server: ProxyServer, front_door: FrontDoor, activity_log: ActivityLog) -> None:
        self._server = server
        self._front_door = front_door
        self._activity_log = activity_log

    def collect(self) -> Iterator[Metric]:
        counters = self._server.counters
        yield from _gauges(self._server, counters)
        yield from _counts(counters)
        yield _latencies(counters.upstream_latencies)
        yield _by_reason(
            "upstream_failures",
            "Failed upstream connections and responses, by reason.",
            counters.upstream_failures,
        )
        yield _by_reason(
            "refused_heads", "Requests that the transport refused, by reason.", counters.refusals
        )
        yield _by_reason(
            "answers", "Responses made by the proxy itself, by reason.", _own_responses(self._front_door)
        )
        yield _count("wakes", "Workspaces started by requests.", self._front_door.handler.lifecycle.wakes)
        yield _count("uses", "Recorded activity of people.", self._activity_log.uses_noted)
        yield _count(
            "use_flush_failures",
            "Failed attempts to hand recorded activity to Redis.",
            self._activity_log.flush_failures,
        )
        yield GaugeMetricFamily(
            "codehub_proxy_uses_pending",
            "Workspaces whose activity has not been handed on.",
            self._activity_log.pending,
        )


def serve_metrics(host: str, port: int, collector: ProxyCollector) -> None:
    """Serve metrics in a thread, apart from the port that browsers reach."""
    registry = CollectorRegistry()
    registry.register(collector)
    start_http_server(port, addr=host, registry=registry)


def _own_responses(front_door: FrontDoor) -> Counter[str]:
    total: Counter[str] = Counter()
    for outcomes in (front_door.outcomes, front_door.admission.outcomes, front_door.handler.outcomes):
        # Copied in one step, because the proxy keeps counting in another thread.
        total.update(dict(outcomes))
    return total


def _gauges(server: ProxyServer, counters: Counters) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "codehub_proxy_open_connections", "Open client connections.", server.open_connections
    )
    yield GaugeMetricFamily("codehub_proxy_open_websockets", "Open WebSockets.", counters.open_tunnels)
    yield GaugeMetricFamily(
        "codehub_proxy_resting_upstreams",
        "Idle upstream connections.",
        server.idle_upstreams,
    )


def _counts(counters: Counters) -> Iterator[Metric]:
    yield _count("connections", "Client connections.", counters.connections)
    yield _count("requests", "Requests.", counters.requests)
    yield _count("websockets", "Connections that became WebSockets.", counters.tunnels)
    yield _count("errors", "Errors of the proxy itself.", counters.errors)
    family = CounterMetricFamily("codehub_proxy_bytes", "Bytes from and to clients.", labels=["direction"])
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
        "Time from a request's head to the first byte of its response.",
        buckets=buckets,
        sum_value=latencies.total,
    )
