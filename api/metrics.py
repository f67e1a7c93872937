"""What Prometheus reads: counted here as it happens, or read from the database when asked."""

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
from codehub.db.events import EventCount, EventKind, count_events_since, last_event_id
from codehub.db.session import Database
from codehub.db.views import count_by_phase, count_needing_person
from codehub.domain.states import Phase

# When a series began doubles their number and tells nothing.
disable_created_metrics()  # type: ignore[no-untyped-call]

# Lines of the audit trail may become visible out of order; after so long they are all there.
SETTLED = timedelta(seconds=5)
TTL_ACTOR = "ttl"
RESULTS = {
    EventKind.OPERATION_CLAIMED: "started",
    EventKind.OPERATION_COMPLETED: "completed",
    EventKind.OPERATION_FAILED: "failed",
    EventKind.ATTEMPT_FAILED: "attempt_failed",
}


class Metrics:
    """One registry per application, so that two in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("http_requests", "Requests answered.", "method", "route", "code")
        self.seconds = Histogram(
            "codehub_http_request_seconds",
            "Time to answer; streams count until they end.",
            ("method", "route"),
            registry=self.registry,
        )
        self.workspaces = self._gauge("workspaces", "Workspaces by phase.", "phase")
        self.needs_person = self._gauge(
            "workspaces_needing_person",
            "Workspaces with an error, also in a deletion, that waits for somebody.",
        )
        self.operations = self._counter(
            "operations",
            "Operations by what became of them, since this process was first asked.",
            "operation",
            "result",
        )
        self.idle = self._counter("idle_requests", "State changes that the TTL sweep asked for.")
        self.collected = self._gauge("archives_collected", "Removed archives that are still remembered.")
        self.live_clients = self._gauge("live_clients", "Open streams of live events.")
        self.live_dropped = self._gauge("live_dropped", "Streams ended because they were read too slowly.")
        self.live_frames = self._gauge("live_frames", "Events and heartbeats sent on streams.")
        self.database_up = self._gauge("database_up", "1 if the last reading of these figures succeeded.")
        self._last_event: int | None = None
        # Two readers at once would both count the same lines.
        self._reading = asyncio.Lock()

    def observe(self, method: str, route: str, code: int, seconds: float) -> None:
        self.requests.labels(method, route, str(code)).inc()
        self.seconds.labels(method, route).observe(seconds)

    async def read(self, database: Database, live: LiveHub, now: datetime) -> None:
        """Bring the figures that live elsewhere up to date; work in proportion to what is new."""
        self.live_clients.set(live.clients)
        self.live_dropped.set(live.dropped)
        self.live_frames.set(live.frames_sent)
        async with self._reading:
            await self._read(database, now)

    def render(self) -> bytes:
        return generate_latest(self.registry)

    async def _read(self, database: Database, now: datetime) -> None:
        async with database.transaction() as session:
            phases = await count_by_phase(session)
            self.needs_person.set(await count_needing_person(session))
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
