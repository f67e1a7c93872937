"""Counts the names that workspaces connected to or were refused, by hour, until they are stored."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime

from codehub.db.egress import LogKey, hour_of
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import OTHER_NAMES, Refusal, Verdict, verdict_of
from egress.target import Target

# Entries per workspace and hour; further names are counted together.
MOST_ENTRIES = 300
# Bounds memory while the database is down.
MOST_PENDING = 50_000


class ConnectionLog:
    """Counts connections. The storing task calls `take`, and `put_back` if it fails."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._hour: datetime | None = None
        self._entries: defaultdict[WorkspaceId, set[tuple[str, int, Verdict]]] = defaultdict(set)
        self._counts: defaultdict[LogKey, int] = defaultdict(int)

    def record(self, workspace_id: WorkspaceId, target: Target, refusal: Refusal | None) -> None:
        hour = hour_of(self._now())
        if hour != self._hour:
            self._hour = hour
            self._entries.clear()
        entry = (target.host, target.port, verdict_of(refusal))
        entries = self._entries[workspace_id]
        if entry not in entries and len(entries) >= MOST_ENTRIES:
            entry = (OTHER_NAMES, 0, verdict_of(refusal))
        entries.add(entry)
        key = LogKey(workspace_id, hour, *entry)
        if key in self._counts or len(self._counts) < MOST_PENDING:
            self._counts[key] += 1

    def take(self) -> dict[LogKey, int]:
        """Return the counts since the last call, and reset them."""
        counts = dict(self._counts)
        self._counts.clear()
        return counts

    def put_back(self, counts: Mapping[LogKey, int]) -> None:
        """Add counts that could not be stored."""
        for key, count in counts.items():
            self._counts[key] += count
