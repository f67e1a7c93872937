"""The router: requests below `/w/` go to workspaces, all others to the API."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field

from codehub.ports import Upstream
from codehub.services.errors import WorkspaceNotFound
from codehub.services.outages import is_outage
from proxy.admission import ID_END, Admission, visit_of
from proxy.decisions import Decision, decide, is_open
from proxy.internal_routes import InternalRoutes
from proxy.request_kind import (
    INTERNAL_PATHS,
    WORKSPACE_PREFIX,
    RequestKind,
    WorkspacePath,
    parse_path,
    request_kind_of,
)
from proxy.responses import Responses, error_response, redirect
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward, Response, Routed
from proxy.workspace_handler import WorkspaceHandler

API_KEY = "api"
# For operators only: the API's own port serves them, and it is not public.
OPERATORS_ONLY = (b"/metrics", b"/readyz")
ROUTE_SECONDS = 15.0
HOLD_SECONDS = 90.0
HOLD_CHECK_SECONDS = 1.0


@dataclass
class FrontDoor:
    """A `Router`. Cached routes are returned at once; only the others need a task."""

    admission: Admission
    handler: WorkspaceHandler
    internal_routes: InternalRoutes
    responses: Responses
    api: Upstream
    outcomes: Counter[str] = field(default_factory=Counter)

    def route(self, head: RequestHead, peer: str) -> Routed | Awaitable[Routed]:
        del peer
        if not head.target.startswith(WORKSPACE_PREFIX):
            return self._to_api(head)
        return self._cached_route(head) or self._find_route(head)

    async def route_again(self, head: RequestHead, failed: Forward) -> Routed:
        path = parse_path(head.target)
        if failed.pool_key == API_KEY or path is None:
            return self.unreachable(head, failed)
        self.handler.workspaces.forget_upstream(path.workspace_id, failed.upstream)
        return await self._find_route(head)

    def unreachable(self, head: RequestHead, failed: Forward) -> Response:
        kind, path = request_kind_of(head), parse_path(head.target)
        workspace = self.handler.workspaces.get(path.workspace_id) if path else None
        if failed.pool_key == API_KEY or workspace is None:
            return self._unavailable(kind)
        self.handler.workspaces.forget_upstream(workspace.view.workspace_id, failed.upstream)
        visit = visit_of(head, self.admission.credentials_of(head), workspace)
        return self.handler.not_answering(kind, visit)

    def _to_api(self, head: RequestHead) -> Routed:
        if head.target.partition(b"?")[0] in OPERATORS_ONLY:
            return error_response(404, "NOT_FOUND", "Nothing is at this path.")
        return Forward(self.api, API_KEY, head.target, trusted=True)

    def _cached_route(self, head: RequestHead) -> Forward | None:
        """Return the route if the caches know everything about it, as for all but the first requests."""
        admitted = self.admission.admit_cached(head)
        if admitted is None:
            return None
        cached, workspace = admitted
        target = head.target
        if target[ID_END : ID_END + 1] != b"/" or target.startswith(INTERNAL_PATHS, ID_END):
            return None
        if workspace.upstream is None or not is_open(workspace.lifecycle):
            return None
        return self.handler.forward(head, cached, workspace, workspace.upstream)

    async def _find_route(self, head: RequestHead) -> Routed:
        kind, path = request_kind_of(head), parse_path(head.target)
        if path is None:
            return self.responses.not_found(kind)
        if not path.rest:
            query = path.query.decode("latin-1")
            return redirect(308, f"{self.responses.base_path}/w/{path.workspace_id}/{query}")
        try:
            async with asyncio.timeout(ROUTE_SECONDS + (HOLD_SECONDS if kind is RequestKind.WAKING else 0)):
                if kind is RequestKind.WAKING:
                    return await self._hold(head, path)
                return await self._respond(head, path, kind)
        except WorkspaceNotFound:
            return self.responses.not_found(kind)
        except Exception as error:
            if not is_outage(error):
                raise
            return self._unavailable(kind)

    async def _respond(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Routed:
        admitted = await self.admission.admit(head, path, kind)
        if isinstance(admitted, Response):
            return admitted
        if path.rest.startswith(INTERNAL_PATHS):
            return self.internal_routes.route(admitted)
        return await self.handler.serve(admitted)

    async def _hold(self, head: RequestHead, path: WorkspacePath) -> Routed:
        """Hold a program's request until the workspace runs, needs a decision, or the time is up."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + HOLD_SECONDS
        workspaces = self.handler.workspaces
        while True:
            routed = await self._respond(head, path, RequestKind.WAKING)
            workspace = workspaces.get(path.workspace_id)
            in_transition = (
                workspace is not None and decide(workspace.lifecycle, RequestKind.WAKING) is Decision.FOLLOW
            )
            if not isinstance(routed, Response) or not in_transition or clock() > deadline:
                return routed
            await workspaces.wait_for_change(path.workspace_id, HOLD_CHECK_SECONDS)

    def _unavailable(self, kind: RequestKind) -> Response:
        self.outcomes["unavailable"] += 1
        return self.responses.unavailable(kind)
