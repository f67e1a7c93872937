"""Prometheus metrics: counted as things happen, or read from the database on each scrape."""

import asyncio
from datetime import datetime, timedelta

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from api.live.hub import LiveHub
from codehub.db.archive_views import count_collected
from codehub.db.disk_usage import count_over_limit
from codehub.db.events import EventCount, EventKind, count_events_since, last_event_id
from codehub.db.session import Database
from codehub.db.views import count_by_phase, count_needing_person
from codehub.domain.states import Phase

# A `_created` series for each counter would double their number.
disable_created_metrics()  # type: ignore[no-untyped-call]

# Audit entries may become visible out of order; after this long, all of them are visible.
SETTLED = timedelta(seconds=5)
TTL_ACTOR = "ttl"
RESULTS = {
    EventKind.OPERATION_CLAIMED: "started",
    EventKind.OPERATION_COMPLETED: "completed",
    EventKind.OPERATION_FAILED: "failed",
    EventKind.ATTEMPT_FAILED: "attempt_failed",
}


class Metrics:
    """The metrics of one application; each has its own registry, so that two in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("http_requests", "HTTP requests.", "method", "route", "code")
        self.seconds = Histogram(
            "codehub_http_request_seconds",
            "Duration of requests; streams count until they end.",
            ("method", "route"),
            registry=self.registry,
        )
        self.workspaces = self._gauge("workspaces", "Workspaces by phase.", "phase")
        self.needs_person = self._gauge(
            "workspaces_needing_person",
            "Workspaces with an error, also in a deletion, that only a person can end.",
        )
        self.over_disk_limit = self._gauge(
            "workspaces_over_disk_limit", "Workspaces that use more disk space than their limit."
        )
        self.operations = self._counter(
            "operations",
            "Operations by result, since the first scrape of this process.",
            "operation",
            "result",
        )
        self.idle = self._counter("idle_requests", "State changes that the TTL sweep requested.")
        self.collected = self._gauge("archives_collected", "Removed archives whose rows are still kept.")
        self.live_clients = self._gauge("live_clients", "Open event streams.")
        self.live_dropped = self._gauge(
            "live_dropped", "Event streams ended because they were read too slowly."
        )
        self.live_frames = self._gauge("live_frames", "Events and heartbeats sent.")
        self.database_up = self._gauge("database_up", "1 if the last scrape could read the database.")
        self._last_event: int | None = None
        # Two scrapes at once would count the same entries twice.
        self._reading = asyncio.Lock()

    def observe(self, method: str, route: str, code: int, seconds: float) -> None:
        self.requests.labels(method, route, str(code)).inc()
        self.seconds.labels(method, route).observe(seconds)

    async def read(
        self, database: Database, live: LiveHub, now: datetime, disk_limit: int | None = None
    ) -> None:
        """Update the metrics that come from the hub and the database; the cost depends on what is new."""
        self.live_clients.set(live.clients)
        self.live_dropped.set(live.dropped)
        self.live_frames.set(live.frames_sent)
        async with self._reading:
            await self._read(database, now, disk_limit)

    def render(self) -> bytes:
        return generate_latest(self.registry)

    async def _read(self, database: Database, now: datetime, disk_limit: int | None) -> None:
        async with database.transaction() as session:
            phases = await count_by_phase(session)
            self.needs_person.set(await count_needing_person(session))
            self.over_disk_limit.set(await count_over_limit(session, disk_limit))
            self.collected.set(await count_collected(session))
            if self._last_event is None:
                self._last_event = await last_event_id(session)
            events = await count_events_since(session, self._last_event, now - SETTLED)
        self._last_event = events.last_id
        for phase in Phase:
            if phase is not Phase.DELETED:
                self.workspaces.labels(phase).set(phases.get(phase, 0))
        for count in events.counts:
            self._count(count)

    def _count(self, count: EventCount) -> None:
        result = RESULTS.get(EventKind(count.kind)) if count.kind in set(EventKind) else None
        if result and count.operation:
            self.operations.labels(count.operation, result).inc(count.count)
        if count.kind == EventKind.STATE_REQUESTED and count.actor == TTL_ACTOR:
            self.idle.inc(count.count)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"codehub_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"codehub_{name}", text, labels, registry=self.registry)
