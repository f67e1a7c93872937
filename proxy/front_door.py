"""The router: everything below `/w/` is a workspace's, everything else the API's."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field

from codehub.ports import Upstream
from codehub.services.errors import WorkspaceNotFound
from codehub.services.outages import is_outage
from proxy.admission import ID_END, Admission, visit_of
from proxy.decisions import Decision, decide, is_open
from proxy.error_responses import error_response, redirect
from proxy.internal_routes import InternalRoutes
from proxy.request_kind import OWN_PATHS, WORKSPACES, RequestKind, WorkspacePath, parse_path, request_kind_of
from proxy.responses import Responses
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward, Response, Routed
from proxy.workspace_handler import WorkspaceHandler

API_KEY = "api"
# For people who run CodeHub: it is on the API's own port, which is not for everybody.
OPERATORS_ONLY = (b"/metrics", b"/readyz")
ROUTE_SECONDS = 15.0
HOLD_SECONDS = 90.0
HOLD_LOOK_SECONDS = 1.0


@dataclass
class FrontDoor:
    """A `Router`. What is known goes its way at once; only what is not costs a task."""

    admission: Admission
    hosting: WorkspaceHandler
    own_paths: InternalRoutes
    replies: Responses
    api: Upstream
    outcomes: Counter[str] = field(default_factory=Counter)

    def route(self, head: RequestHead, peer: str) -> Routed | Awaitable[Routed]:
        del peer
        if not head.target.startswith(WORKSPACES):
            return self._to_api(head)
        return self._known_way(head) or self._find_way(head)

    async def route_again(self, head: RequestHead, failed: Forward) -> Routed:
        path = parse_path(head.target)
        if failed.pool_key == API_KEY or path is None:
            return self.unreachable(head, failed)
        self.hosting.directory.forget_upstream(path.workspace_id, failed.upstream)
        return await self._find_way(head)

    def unreachable(self, head: RequestHead, failed: Forward) -> Response:
        ask, path = request_kind_of(head), parse_path(head.target)
        place = self.hosting.directory.get(path.workspace_id) if path else None
        if failed.pool_key == API_KEY or place is None:
            return self._unavailable(ask)
        self.hosting.directory.forget_upstream(place.view.workspace_id, failed.upstream)
        visit = visit_of(head, self.admission.shown_by(head), place)
        return self.hosting.not_answering(ask, visit)

    def _to_api(self, head: RequestHead) -> Routed:
        if head.target.partition(b"?")[0] in OPERATORS_ONLY:
            return error_response(404, "NOT_FOUND", "There is nothing at this path.")
        return Forward(self.api, API_KEY, head.target, trusted=True)

    def _known_way(self, head: RequestHead) -> Forward | None:
        """For all requests but the first ones; None if somebody has to be asked."""
        recalled = self.admission.recall(head)
        if recalled is None:
            return None
        known, place = recalled
        target = head.target
        if target[ID_END : ID_END + 1] != b"/" or target.startswith(OWN_PATHS, ID_END):
            return None
        if place.upstream is None or not is_open(place.lifecycle):
            return None
        return self.hosting.forward(head, known, place, place.upstream)

    async def _find_way(self, head: RequestHead) -> Routed:
        ask, path = request_kind_of(head), parse_path(head.target)
        if path is None:
            return self.replies.not_found(ask)
        if not path.rest:
            query = path.query.decode("latin-1")
            return redirect(308, f"{self.replies.base_path}/w/{path.workspace_id}/{query}")
        try:
            async with asyncio.timeout(ROUTE_SECONDS + (HOLD_SECONDS if ask is RequestKind.WAKING else 0)):
                if ask is RequestKind.WAKING:
                    return await self._hold(head, path)
                return await self._answer(head, path, ask)
        except WorkspaceNotFound:
            return self.replies.not_found(ask)
        except Exception as error:
            if not is_outage(error):
                raise
            return self._unavailable(ask)

    async def _answer(self, head: RequestHead, path: WorkspacePath, ask: RequestKind) -> Routed:
        admitted = await self.admission.admit(head, path, ask)
        if isinstance(admitted, Response):
            return admitted
        if path.rest.startswith(OWN_PATHS):
            return self.own_paths.route(admitted)
        return await self.hosting.serve(admitted)

    async def _hold(self, head: RequestHead, path: WorkspacePath) -> Routed:
        """For a program that waits: until it runs, or somebody has to decide, or the time is up."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + HOLD_SECONDS
        directory = self.hosting.directory
        while True:
            routed = await self._answer(head, path, RequestKind.WAKING)
            place = directory.get(path.workspace_id)
            moves = place is not None and decide(place.lifecycle, RequestKind.WAKING) is Decision.FOLLOW
            if not isinstance(routed, Response) or not moves or clock() > deadline:
                return routed
            await directory.wait_for_change(path.workspace_id, HOLD_LOOK_SECONDS)

    def _unavailable(self, ask: RequestKind) -> Response:
        self.outcomes["unavailable"] += 1
        return self.replies.unavailable(ask)
