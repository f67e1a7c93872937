"""The router: a workspace's origins go to the programs in it, the main origin to the API and the entrance."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from http import HTTPStatus

from codehub.domain.attention import LifecycleState
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Upstream
from codehub.services.errors import WorkspaceNotFound
from codehub.services.outages import is_outage
from proxy.admission import Admission, visit_of
from proxy.cookie_refusals import CookieRefusals
from proxy.decisions import Decision, decide, is_open
from proxy.entrance import ENTER, Entrance
from proxy.hosts import Hosts, Misdirected, UnknownNumber
from proxy.internal_routes import OwnOriginRoutes
from proxy.paths import plain_path
from proxy.port_access import port_of
from proxy.port_handler import PortRoutes
from proxy.request_kind import (
    ENTRANCES,
    ID_LENGTH,
    INTERNAL_PATHS,
    WORKSPACE_PREFIX,
    RequestKind,
    WorkspacePath,
    WorkspacePort,
    own_path,
    parse_path,
    parse_port_path,
    request_kind_of,
)
from proxy.responses import Responses, error_response, redirect
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward, Response, Routed
from proxy.workspace_handler import WorkspaceHandler

API_KEY = "api"
# For operators only: the API's own port serves them, and it is not public.
OPERATORS_ONLY = (b"/metrics", b"/readyz")
# Served here: IDEs work while the API is down, so an API outage must not restart the proxy.
LIVENESS = b"/livez"
NO_PORTS = (
    "The ports of workspaces need origins of their own here. An administrator must set "
    "CODEHUB_WORKSPACES_ORIGINS to subdomain."
)
ROUTE_SECONDS = 15.0
HOLD_SECONDS = 90.0
HOLD_CHECK_SECONDS = 1.0
ID_START = len(WORKSPACE_PREFIX)
# In path mode, the path of an IDE follows `/w/{id}`.
ID_END = ID_START + ID_LENGTH


@dataclass
class FrontDoor:
    """A `Router`. Cached routes are returned at once; others need a task.

    Without an entrance, workspaces are below `/w/` of the main origin (path mode).
    """

    hosts: Hosts
    admission: Admission
    handler: WorkspaceHandler
    internal_routes: OwnOriginRoutes
    entrance: Entrance | None
    responses: Responses
    cookie_refusals: CookieRefusals
    main_origin: str
    api: Upstream
    ports: PortRoutes
    # Whether ports have origins of their own.
    has_ports: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)

    def route(self, head: RequestHead, peer: str) -> Routed | Awaitable[Routed]:
        del peer
        refused = self.cookie_refusals.check(head)
        return self._route(head) if refused is None else self._refuse_cookies(refused)

    def _route(self, head: RequestHead) -> Routed | Awaitable[Routed]:
        try:
            found = self.hosts.find(head.block.known.get(b"host"))
        except Misdirected:
            return _misdirected()
        except UnknownNumber as unknown:
            return self._learn(head, unknown.number)
        if found is None:
            return self._route_on_main(head)
        if isinstance(found, WorkspacePort):
            return self.ports.find_cached(head, found) or self._find_route(head)
        return self._cached_route(head, found, 0) or self._find_route(head)

    def _route_on_main(self, head: RequestHead) -> Routed | Awaitable[Routed]:
        if not head.target.startswith(ENTRANCES):
            return self._to_api(head)
        if self.entrance is None and head.target.startswith(WORKSPACE_PREFIX):
            workspace_id = WorkspaceId(head.target[ID_START:ID_END].decode("latin-1"))
            cached = self._cached_route(head, workspace_id, ID_END)
            if cached is not None:
                return cached
        return self._to_main_host(head) or self._find_route(head)

    async def _learn(self, head: RequestHead, number: int) -> Routed:
        """Look up which workspace has this port, then route the request."""
        workspace_id = await self.entrance.find_workspace(number) if self.entrance else None
        if workspace_id is None:
            return _misdirected()
        self.hosts.learn(number, workspace_id)
        return await self._find_route(head)

    async def route_again(self, head: RequestHead, failed: Forward) -> Routed:
        path = self._path_of(head)
        if failed.pool_key == API_KEY or path is None:
            return self.unreachable(head, failed)
        if path.port is not None:
            self.ports.forget(port_of(path))
        else:
            self.handler.workspaces.forget_upstream(path.workspace_id, failed.upstream)
        return await self._find_route(head)

    def unreachable(self, head: RequestHead, failed: Forward) -> Response:
        kind, path = request_kind_of(head), self._path_of(head)
        if path and path.port is not None:
            return self.ports.unreachable(head, port_of(path))
        workspace = self.handler.workspaces.get(path.workspace_id) if path else None
        if failed.pool_key == API_KEY or workspace is None:
            return self._unavailable(kind)
        self.handler.workspaces.forget_upstream(workspace.view.workspace_id, failed.upstream)
        visit = visit_of(head, self.admission.credentials_of(head), workspace)
        return self.handler.not_answering(kind, visit)

    def _to_api(self, head: RequestHead) -> Routed:
        path = plain_path(head.target)
        if path == LIVENESS:
            return Response(200)
        if path in OPERATORS_ONLY:
            return error_response(404, "NOT_FOUND", "Nothing is at this path.")
        return self._to_main_host(head) or Forward(self.api, API_KEY, head.target, trusted=True)

    def _to_main_host(self, head: RequestHead) -> Response | None:
        """Redirect a person from another loopback name to the main origin, which has the cookies."""
        if self.hosts.is_other_loopback(head.host) and request_kind_of(head) is RequestKind.NAVIGATION:
            return redirect(307, self.main_origin + head.target.decode("latin-1"))
        return None

    def _cached_route(self, head: RequestHead, workspace_id: WorkspaceId, start: int) -> Forward | None:
        """Return the route if the caches know everything about it, as for all but the first requests."""
        admitted = self.admission.admit_cached(head, workspace_id)
        if admitted is None:
            return None
        cached, workspace = admitted
        target = head.target
        if target[start : start + 1] != b"/" or target.startswith(INTERNAL_PATHS, start):
            return None
        if workspace.upstream is None or not is_open(workspace.lifecycle):
            return None
        return self.handler.forward(head, cached, workspace, workspace.upstream)

    def _path_of(self, head: RequestHead) -> WorkspacePath | None:
        found = self.hosts.find(head.host)
        if found is None:
            return parse_path(head.target) or parse_port_path(head.target)
        if isinstance(found, WorkspacePort):
            return own_path(found.workspace_id, head.target, found.port)
        return own_path(found, head.target)

    async def _find_route(self, head: RequestHead) -> Routed:
        kind, path = request_kind_of(head), self._path_of(head)
        if path is None:
            return self.responses.not_found(kind)
        try:
            async with asyncio.timeout(ROUTE_SECONDS + (HOLD_SECONDS if kind is RequestKind.WAKING else 0)):
                return await self._serve(head, path, kind)
        except WorkspaceNotFound:
            return self.responses.not_found(kind)
        except Exception as error:
            if not is_outage(error):
                raise
            return self._unavailable(kind)

    async def _serve(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Routed:
        if path.port is not None and not self.has_ports:
            return error_response(404, "NOT_FOUND", NO_PORTS)
        if self.entrance is not None:
            if self.hosts.find(head.host) is None:
                return await self.entrance.respond(head, path, kind)
            if path.rest == ENTER:
                return await self.entrance.redeem(head, path, kind)
        if not path.rest:
            query = path.query.decode("latin-1")
            return redirect(308, f"{self.responses.base_path}/w/{path.workspace_id}/{query}")
        if kind is RequestKind.WAKING:
            return await self._hold(head, path)
        return await self._respond(head, path, kind)

    async def _respond(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Routed:
        if path.port is not None:
            return await self.ports.respond(head, path, kind)
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
            if not isinstance(routed, Response) or clock() > deadline:
                return routed
            # The workspace may have changed since the response was made, and then needs another one.
            workspace = await workspaces.find(path.workspace_id)
            if workspace is None or not _is_worth_waiting(routed, path, workspace.lifecycle):
                return routed
            await workspaces.wait_for_change(path.workspace_id, HOLD_CHECK_SECONDS)

    def explain_too_large(self, start: bytes) -> Response | None:
        response = self.cookie_refusals.explain_too_large(start)
        return None if response is None else self._refuse_cookies(response)

    def _refuse_cookies(self, response: Response) -> Response:
        self.outcomes["cookies"] += 1
        return response

    def _unavailable(self, kind: RequestKind) -> Response:
        self.outcomes["unavailable"] += 1
        return self.responses.unavailable(kind)


def _is_worth_waiting(response: Response, path: WorkspacePath, state: LifecycleState) -> bool:
    """Return whether the IDE should respond soon: the workspace is starting or has just started."""
    decision = decide(state, RequestKind.WAKING)
    if decision is Decision.FORWARD and path.port is None:
        return response.status in {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE}
    about_to_run = decision in {Decision.FOLLOW, Decision.FORWARD}
    return about_to_run and response.status == HTTPStatus.SERVICE_UNAVAILABLE


def _misdirected() -> Response:
    return error_response(421, "NOT_FOUND", "No workspace is at this address. Open it from the dashboard.")
