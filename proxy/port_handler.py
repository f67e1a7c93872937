"""Serves ports: to the owner like the IDE, to guests only while the workspace runs."""

from dataclasses import dataclass

from codehub.domain.conditions import WorkspaceId
from codehub.ports import PortUnavailable, Upstream
from proxy.activity import ActivityLog
from proxy.activity_rules import OTHER
from proxy.admission import Admitted
from proxy.decisions import is_open
from proxy.internal_routes import OwnOriginRoutes
from proxy.port_access import PortAccess, PortVisitor, port_of
from proxy.request_kind import INTERNAL_PATHS, RequestKind, WorkspacePath, WorkspacePort, request_kind_of
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import ActivityObserver, Forward, Response, Routed
from proxy.workspace_handler import OUR_COOKIES, TOKEN_PREFIX, WorkspaceHandler


class OwnersRequest(ActivityObserver):
    """Records the owner's use of a port. WebSocket messages do not count: pages send them unattended."""

    __slots__ = ("_log", "_path", "_workspace_id")

    def __init__(self, log: ActivityLog, workspace_id: WorkspaceId, path: bytes) -> None:
        self._log = log
        self._workspace_id = workspace_id
        self._path = path

    def request(self, head: RequestHead) -> None:
        if OTHER.is_activity_request(self._path, head):
            self._log.note(self._workspace_id)

    def message(self, opcode: int, length: int, start: bytes) -> None:
        """Ignore it."""

    def is_saturated(self) -> bool:
        return True


@dataclass
class PortHandler(WorkspaceHandler):
    """Carries out the decisions of `decide` for the owner of a port, and serves guests."""

    async def open(self, admitted: Admitted) -> Routed:
        port = port_of(admitted.path)
        visitor = PortVisitor(admitted.workspace, port.port, admitted.cached_caller, is_owner=True)
        return await self.open_port(admitted.head, admitted.kind, port, visitor)

    async def open_port(
        self, head: RequestHead, kind: RequestKind, target: WorkspacePort, visitor: PortVisitor
    ) -> Routed:
        """Forward to the port of a running workspace."""
        try:
            upstream = await self.workspaces.find_port(visitor.workspace, target.port)
        except PortUnavailable as refused:
            return self._count("port_unavailable", self.responses.port_unavailable(kind, str(refused)))
        if upstream is None:
            return self._count("port_not_responding", self.responses.port_not_responding(kind, target.port))
        return self.forward_to_port(head, target, visitor, upstream)

    async def serve_guest(
        self, head: RequestHead, kind: RequestKind, target: WorkspacePort, visitor: PortVisitor
    ) -> Routed:
        """Serve a guest: never start the workspace, and do not count the visit as use."""
        if not is_open(visitor.workspace.lifecycle):
            path = f"/p/{target.workspace_id}/{target.port}/"
            return self._count("port_stopped", self.responses.port_stopped(kind, path))
        return await self.open_port(head, kind, target, visitor)

    def forward_to_port(
        self, head: RequestHead, target: WorkspacePort, visitor: PortVisitor, upstream: Upstream
    ) -> Forward:
        authorization, observer = head.authorization, None
        if visitor.is_owner:
            path = head.target.partition(b"?")[0]
            observer = OwnersRequest(self.activity_log, target.workspace_id, path)
        return Forward(
            upstream=upstream,
            pool_key=target.label,
            target=head.target,
            drop_cookies=OUR_COOKIES,
            drop_authorization=authorization is not None and TOKEN_PREFIX in authorization,
            observer=observer,
            credential=visitor.credential,
            user=visitor.caller.user_id if visitor.caller else None,
        )


@dataclass
class PortRoutes:
    """Routes the requests on the origins of ports."""

    access: PortAccess
    handler: PortHandler
    internal_routes: OwnOriginRoutes

    def find_cached(self, head: RequestHead, target: WorkspacePort) -> Forward | None:
        """Return the route if everything needed is cached."""
        visitor = self.access.find_cached(head, target)
        if visitor is None or head.target.startswith(INTERNAL_PATHS):
            return None
        workspace = visitor.workspace
        upstream = workspace.port_upstreams.get(target.port)
        if upstream is None or not is_open(workspace.lifecycle):
            return None
        return self.handler.forward_to_port(head, target, visitor, upstream)

    async def respond(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Routed:
        visitor = await self.access.find(head, path, kind)
        if isinstance(visitor, Response):
            return visitor
        if not visitor.is_owner or visitor.caller is None:
            return await self.handler.serve_guest(head, kind, port_of(path), visitor)
        credentials = self.access.admission.credentials_of(head)
        admitted = Admitted(head, kind, path, credentials, visitor.caller, visitor.workspace)
        if path.rest.startswith(INTERNAL_PATHS):
            return self.internal_routes.route(admitted)
        return await self.handler.serve(admitted)

    def forget(self, target: WorkspacePort) -> None:
        """Forget the cached route to a port that could not be reached."""
        self.handler.workspaces.forget_port(target.workspace_id, target.port)

    def unreachable(self, head: RequestHead, target: WorkspacePort) -> Response:
        self.forget(target)
        return self.handler.responses.port_not_responding(request_kind_of(head), target.port)
