"""Where workspaces are: remembered for seconds, and looked at again at the first word of a change."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from codehub.db.session import Database
from codehub.db.views import WorkspaceView, list_views_by_id, load_view
from codehub.domain.attention import LifecycleState
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Instances, Upstream
from proxy.single_flight import SingleFlight

FRESH_SECONDS = 4.0
# Those that nobody asked for since then are not kept up to date.
KEPT_SECONDS = 30.0
CAPACITY = 10_000


@dataclass(slots=True)
class CachedWorkspace:
    """A workspace as it was last seen; its upstream is kept as long as its instance is the same."""

    view: WorkspaceView
    lifecycle: LifecycleState
    confirmed_at: float
    asked_at: float = -math.inf
    upstream: Upstream | None = None

    @property
    def instance_since(self) -> datetime | None:
        return self.view.conditions.container_ready.last_transition_time


class WorkspaceCache:
    """The workspaces that somebody asks for."""

    def __init__(
        self, database: Database, instances: Instances, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._instances = instances
        self._clock = clock
        self._places: dict[WorkspaceId, CachedWorkspace] = {}
        self._changed_at: dict[WorkspaceId, float] = {}
        self._waiting: dict[WorkspaceId, asyncio.Event] = {}
        self._looks: SingleFlight[WorkspaceId, CachedWorkspace | None] = SingleFlight()
        self._searches: SingleFlight[WorkspaceId, Upstream | None] = SingleFlight()

    def get(self, workspace_id: WorkspaceId) -> CachedWorkspace | None:
        """What is known and still sure."""
        place = self._places.get(workspace_id)
        if place is None:
            return None
        now = self._clock()
        place.asked_at = now
        return place if now - place.confirmed_at <= FRESH_SECONDS else None

    async def look(self, workspace_id: WorkspaceId) -> CachedWorkspace | None:
        """The workspace, None if there is none. Raises when the database cannot be asked."""
        known = self.get(workspace_id)
        return known or await self._looks.run(workspace_id, lambda: self._load(workspace_id))

    async def find_upstream(self, place: CachedWorkspace) -> Upstream | None:
        """Where its IDE takes requests; None if it does not."""
        if place.upstream is not None:
            return place.upstream
        workspace_id = place.view.workspace_id
        return await self._searches.run(workspace_id, lambda: self._search(workspace_id))

    def forget_upstream(self, workspace_id: WorkspaceId, failed: object) -> None:
        """It could not be reached; one that was found since then is kept."""
        place = self._places.get(workspace_id)
        if place is not None and place.upstream == failed:
            place.upstream = None

    def note_change(self, workspace_id: WorkspaceId) -> None:
        """It is no longer what it was: what has been seen of it, or is just being read, does not count."""
        place = self._places.get(workspace_id)
        if place is not None:
            place.confirmed_at = -math.inf
        self._changed_at[workspace_id] = self._clock()
        self._looks.forget(workspace_id)
        self._announce(workspace_id)

    async def wait_for_change(self, workspace_id: WorkspaceId, seconds: float) -> None:
        """Return when it changed, or when the time is up."""
        changed = self._waiting.setdefault(workspace_id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return

    async def confirm(self) -> None:
        """Look at all that were asked for lately, with one question; forget the others."""
        began = self._clock()
        self._forget_old(began)
        asked = set(self._places)
        if not asked:
            return
        async with self._database.transaction() as session:
            views = await list_views_by_id(session, asked)
        for view in views:
            self._store(view, began)
        for workspace_id in asked - {view.workspace_id for view in views}:
            self._places.pop(workspace_id, None)
            self._announce(workspace_id)

    async def _load(self, workspace_id: WorkspaceId) -> CachedWorkspace | None:
        began = self._clock()
        async with self._database.transaction() as session:
            view = await load_view(session, workspace_id)
        if view is None:
            self._places.pop(workspace_id, None)
            return None
        if len(self._places) >= CAPACITY:
            self._places.clear()
        place = self._store(view, began)
        place.asked_at = began
        return place

    async def _search(self, workspace_id: WorkspaceId) -> Upstream | None:
        before = self._places.get(workspace_id)
        upstream = await self._instances.find_upstream(workspace_id)
        place = self._places.get(workspace_id)
        # Only what was found out about the instance that is still there may be kept.
        if place is not None and before is not None and place.instance_since == before.instance_since:
            place.upstream = upstream
        return upstream

    def _store(self, view: WorkspaceView, began: float) -> CachedWorkspace:
        """Take in what was seen; answers may overtake each other, and changes may overtake answers."""
        workspace_id = view.workspace_id
        known = self._places.get(workspace_id)
        if known is not None and known.view.version > view.version:
            return known
        outdated = self._changed_at.get(workspace_id, -math.inf) >= began
        lifecycle = view.lifecycle
        place = CachedWorkspace(view, lifecycle, -math.inf if outdated else began)
        if known is not None:
            place.asked_at = known.asked_at
            if known.view.version == view.version:
                place.confirmed_at = max(place.confirmed_at, known.confirmed_at)
            if known.instance_since == place.instance_since:
                place.upstream = known.upstream
            if known.lifecycle != lifecycle:
                self._announce(workspace_id)
        self._places[workspace_id] = place
        return place

    def _announce(self, workspace_id: WorkspaceId) -> None:
        waiting = self._waiting.pop(workspace_id, None)
        if waiting is not None:
            waiting.set()

    def _forget_old(self, now: float) -> None:
        for workspace_id, place in list(self._places.items()):
            if now - place.asked_at > KEPT_SECONDS:
                del self._places[workspace_id]
        for workspace_id in self._waiting.keys() - self._places.keys():
            # Whoever waited has gone: waiting asks again and again.
            del self._waiting[workspace_id]
        for workspace_id, moment in list(self._changed_at.items()):
            if now - moment > KEPT_SECONDS:
                del self._changed_at[workspace_id]
