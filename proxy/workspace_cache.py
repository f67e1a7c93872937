"""A cache of workspaces and their upstreams, refreshed every few seconds and on events."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from codehub.db.session import Database
from codehub.db.views import WorkspaceView, list_views_by_id, load_view
from codehub.domain.attention import LifecycleState
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Instances, Upstream
from proxy.single_flight import SingleFlight

FRESH_SECONDS = 4.0
# Workspaces without requests for this long are dropped.
KEPT_SECONDS = 30.0
CAPACITY = 10_000
MAX_PORTS = 64


@dataclass(slots=True)
class CachedWorkspace:
    """A workspace as last read; its upstreams are kept until its instance changes."""

    view: WorkspaceView
    lifecycle: LifecycleState
    validated_at: float
    requested_at: float = -math.inf
    upstream: Upstream | None = None
    port_upstreams: dict[int, Upstream] = field(default_factory=dict)

    @property
    def instance_since(self) -> datetime | None:
        return self.view.conditions.container_ready.last_transition_time


class WorkspaceCache:
    """The workspaces that requests ask for."""

    def __init__(
        self, database: Database, instances: Instances, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._instances = instances
        self._clock = clock
        self._workspaces: dict[WorkspaceId, CachedWorkspace] = {}
        self._changed_at: dict[WorkspaceId, float] = {}
        self._waiting: dict[WorkspaceId, asyncio.Event] = {}
        self._loads: SingleFlight[WorkspaceId, CachedWorkspace | None] = SingleFlight()
        self._upstream_searches: SingleFlight[WorkspaceId, Upstream | None] = SingleFlight()

    def get(self, workspace_id: WorkspaceId) -> CachedWorkspace | None:
        """Return the workspace if it is cached and fresh."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is None:
            return None
        now = self._clock()
        workspace.requested_at = now
        return workspace if now - workspace.validated_at <= FRESH_SECONDS else None

    async def find(self, workspace_id: WorkspaceId) -> CachedWorkspace | None:
        """Return the workspace, or None if there is none. Raise if the database does not answer."""
        known = self.get(workspace_id)
        return known or await self._loads.run(workspace_id, lambda: self._load(workspace_id))

    async def find_upstream(self, workspace: CachedWorkspace) -> Upstream | None:
        """Return where the IDE takes requests, or None if it takes none."""
        if workspace.upstream is not None:
            return workspace.upstream
        workspace_id = workspace.view.workspace_id
        return await self._upstream_searches.run(workspace_id, lambda: self._search(workspace_id))

    async def find_port(self, workspace: CachedWorkspace, port: int) -> Upstream | None:
        """Return how to reach a port, or None if the instance does not run. Raise PortUnavailable."""
        known = workspace.port_upstreams.get(port)
        if known is not None:
            return known
        upstream = await self._instances.find_port(workspace.view.workspace_id, port)
        if upstream is not None:
            if len(workspace.port_upstreams) >= MAX_PORTS:
                workspace.port_upstreams.clear()
            # This dictionary belongs to the instance that was asked; a new instance gets a new one.
            workspace.port_upstreams[port] = upstream
        return upstream

    def forget_port(self, workspace_id: WorkspaceId, port: int) -> None:
        """Forget how to reach a port that failed."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is not None:
            workspace.port_upstreams.pop(port, None)

    def forget_upstream(self, workspace_id: WorkspaceId, failed: object) -> None:
        """Forget an upstream that failed, unless a new one has been found since."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is not None and workspace.upstream == failed:
            workspace.upstream = None

    def mark_changed(self, workspace_id: WorkspaceId) -> None:
        """Distrust what is cached, and what is being read right now."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is not None:
            workspace.validated_at = -math.inf
        self._changed_at[workspace_id] = self._clock()
        self._loads.forget(workspace_id)
        self._notify(workspace_id)

    async def wait_for_change(self, workspace_id: WorkspaceId, seconds: float) -> None:
        """Wait until the workspace changes or the time is up."""
        changed = self._waiting.setdefault(workspace_id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return

    async def refresh(self) -> None:
        """Read all recently requested workspaces with one query; drop the others."""
        began = self._clock()
        self._drop_old(began)
        asked = set(self._workspaces)
        if not asked:
            return
        async with self._database.transaction() as session:
            views = await list_views_by_id(session, asked)
        for view in views:
            self._store(view, began)
        for workspace_id in asked - {view.workspace_id for view in views}:
            self._workspaces.pop(workspace_id, None)
            self._notify(workspace_id)

    async def _load(self, workspace_id: WorkspaceId) -> CachedWorkspace | None:
        began = self._clock()
        async with self._database.transaction() as session:
            view = await load_view(session, workspace_id)
        if view is None:
            self._workspaces.pop(workspace_id, None)
            return None
        if len(self._workspaces) >= CAPACITY:
            self._workspaces.clear()
        workspace = self._store(view, began)
        workspace.requested_at = began
        return workspace

    async def _search(self, workspace_id: WorkspaceId) -> Upstream | None:
        before = self._workspaces.get(workspace_id)
        upstream = await self._instances.find_upstream(workspace_id)
        workspace = self._workspaces.get(workspace_id)
        # Keep the result only if the instance is still the same.
        if workspace is not None and before is not None and workspace.instance_since == before.instance_since:
            workspace.upstream = upstream
        return upstream

    def _store(self, view: WorkspaceView, began: float) -> CachedWorkspace:
        """Store a view; queries may overtake each other, and changes may overtake queries."""
        workspace_id = view.workspace_id
        known = self._workspaces.get(workspace_id)
        if known is not None and known.view.version > view.version:
            return known
        outdated = self._changed_at.get(workspace_id, -math.inf) >= began
        lifecycle = view.lifecycle
        workspace = CachedWorkspace(view, lifecycle, -math.inf if outdated else began)
        if known is not None:
            workspace.requested_at = known.requested_at
            if known.view.version == view.version:
                workspace.validated_at = max(workspace.validated_at, known.validated_at)
            if known.instance_since == workspace.instance_since:
                workspace.upstream, workspace.port_upstreams = known.upstream, known.port_upstreams
            if known.lifecycle != lifecycle:
                self._notify(workspace_id)
        self._workspaces[workspace_id] = workspace
        return workspace

    def _notify(self, workspace_id: WorkspaceId) -> None:
        waiting = self._waiting.pop(workspace_id, None)
        if waiting is not None:
            waiting.set()

    def _drop_old(self, now: float) -> None:
        for workspace_id, workspace in list(self._workspaces.items()):
            if now - workspace.requested_at > KEPT_SECONDS:
                del self._workspaces[workspace_id]
        for workspace_id in self._waiting.keys() - self._workspaces.keys():
            # No longer in use: a request that waits keeps the workspace in the cache.
            del self._waiting[workspace_id]
        for workspace_id, moment in list(self._changed_at.items()):
            if now - moment > KEPT_SECONDS:
                del self._changed_at[workspace_id]
