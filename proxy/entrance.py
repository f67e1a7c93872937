"""Sends people from the main origin to a workspace's own origin, with a ticket; see ADR 0037."""

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from codehub.db.origin_numbers import ensure_number, find_workspace_by_number
from codehub.db.session import Database
from codehub.db.views import WorkspaceView
from codehub.domain.conditions import WorkspaceId
from codehub.origins import OriginMode, Origins
from codehub.services.errors import DiskLimitExceeded, InvalidState, LimitExceeded, OperationInProgress
from codehub.services.identity import Credential
from codehub.services.workspace_sessions import issue_ticket, redeem_ticket
from proxy.admission import Admission, Admitted
from proxy.caller_cache import CachedCaller
from proxy.decisions import Decision, decide
from proxy.forms import read_form
from proxy.internal_routes import OwnOriginRoutes
from proxy.lifecycle import Lifecycle
from proxy.port_access import PortAccess
from proxy.request_kind import INTERNAL_PATHS, RequestKind, WorkspacePath
from proxy.responses import Responses, error_response, redirect
from proxy.transport.request_head import TARGET, RequestHead
from proxy.transport.routing import Response, Routed

NO_PORT = "There is no free port for this workspace. Ask an administrator to extend CODEHUB_WORKSPACES_PORTS."
ENTER = INTERNAL_PATHS + b"enter"
NEEDS_PERSON = frozenset({Decision.OFFER_START, Decision.OFFER_RESTORE, Decision.EXPLAIN_ERROR})


@dataclass(frozen=True)
class Entrance:
    """Serves `/w/` and `/p/` on the main origin, and redeems tickets on the workspaces' origins."""

    admission: Admission
    internal_routes: OwnOriginRoutes
    lifecycle: Lifecycle
    responses: Responses
    origins: Origins
    database: Database
    port_access: PortAccess

    async def respond(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Routed:
        """Redirect a person to the workspace; serve the pages with forms."""
        if path.port is not None:
            return await self._redirect_to_port(head, path, kind)
        is_internal = path.rest.startswith(INTERNAL_PATHS)
        if kind is not RequestKind.NAVIGATION and not is_internal:
            return self._refuse(path)
        admitted = await self.admission.admit(head, path, kind)
        if isinstance(admitted, Response):
            return admitted
        if is_internal:
            return self.internal_routes.route(admitted)
        if admitted.cached_caller.caller.credential is not Credential.SESSION:
            return self._refuse(path)
        return await self._redirect_to_workspace(admitted)

    async def find_workspace(self, number: int) -> WorkspaceId | None:
        """Return the workspace whose origin has this number."""
        async with self.database.transaction() as session:
            return await find_workspace_by_number(session, number)

    async def redeem(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Response:
        """Set the workspace's cookie; redirect an invalid ticket to the main origin."""
        if kind is not RequestKind.NAVIGATION:
            return error_response(403, "FORBIDDEN", "A ticket works only if a person opens it in a browser.")
        fields = read_form(path.query.removeprefix(b"?")) or {}
        wanted = _safe_target(fields.get("next", ""))
        token = await redeem_ticket(
            self.database, fields.get("ticket", ""), path.workspace_id, path.port, now=datetime.now(UTC)
        )
        if token is None:
            entrance = self.origins.entrance_of(path.workspace_id, path.port)
            return redirect(303, entrance + wanted.removeprefix("/"))
        # The router has checked that the host is the workspace's.
        host = (head.host or b"").decode("latin-1")
        cookie = ("Set-Cookie", f"{self.origins.workspace_cookie_at(host)}={token}; {self._attributes}")
        return redirect(303, f"{self.origins.scheme}://{host}{wanted}", cookie)

    @property
    def _attributes(self) -> str:
        """Return the attributes; without Domain, browsers send the cookie to this host only."""
        secure = "; Secure" if self.origins.scheme == "https" else ""
        return f"Path=/; HttpOnly; SameSite=Lax{secure}"

    async def _redirect_to_port(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Response:
        """Redirect the owner or a guest to a port; start the workspace for the owner only."""
        if kind is not RequestKind.NAVIGATION:
            return self._refuse(path)
        visitor = await self.port_access.find(head, path, kind)
        if isinstance(visitor, Response):
            return visitor
        caller = visitor.caller
        if caller is None:
            # A public port needs no ticket.
            return redirect(303, f"{self._port_origin(path)}{_target_on_origin(path)}")
        if caller.caller.credential is not Credential.SESSION:
            return self._refuse(path)
        if not visitor.is_owner:
            return await self._redirect_with_ticket(caller, path, self._port_origin(path), kind)
        credentials = self.admission.credentials_of(head)
        return await self._redirect_to_workspace(
            Admitted(head, kind, path, credentials, caller, visitor.workspace)
        )

    def _port_origin(self, path: WorkspacePath) -> str:
        found = self.origins.port_origin_of(path.workspace_id, path.port or 0)
        if found is None:
            raise ValueError("ports have no origins here")
        return found

    async def _redirect_to_workspace(self, admitted: Admitted) -> Response:
        view = admitted.workspace.view
        decision = decide(admitted.workspace.lifecycle, admitted.kind)
        if decision in NEEDS_PERSON:
            return self.responses.not_running(admitted.kind, admitted.visit, decision)
        if decision is Decision.WAKE:
            try:
                await self.lifecycle.start(admitted.cached_caller.caller, view)
            except LimitExceeded as refused:
                return self.responses.limit_reached(admitted.kind, admitted.visit, refused)
            except DiskLimitExceeded as refused:
                return self.responses.disk_limit_reached(admitted.kind, admitted.visit, refused)
            except (OperationInProgress, InvalidState):
                # Another request came first; the workspace's page shows its result.
                pass
            self.admission.workspaces.mark_changed(view.workspace_id)
        is_port = admitted.path.port is not None
        own = self._port_origin(admitted.path) if is_port else await self._own_origin(view)
        if own is None:
            return error_response(503, "LIMIT_EXCEEDED", NO_PORT)
        return await self._redirect_with_ticket(admitted.cached_caller, admitted.path, own, admitted.kind)

    async def _redirect_with_ticket(
        self, cached: CachedCaller, path: WorkspacePath, origin: str, kind: RequestKind
    ) -> Response:
        """Issue a ticket and redirect to the origin with it."""
        session_id, now = cached.caller.credential_id, datetime.now(UTC)
        ticket = await issue_ticket(self.database, session_id, path.workspace_id, path.port, now=now)
        if ticket is None:
            return self.responses.unauthenticated(kind, path)
        return redirect(
            303,
            f"{origin}{ENTER.decode()}?ticket={ticket}&next={quote(_target_on_origin(path), safe='')}",
            ("Referrer-Policy", "no-referrer"),
        )

    async def _own_origin(self, view: WorkspaceView) -> str | None:
        number = view.origin_number
        if self.origins.mode is OriginMode.PORT and number is None:
            async with self.database.transaction() as session:
                number = await ensure_number(session, view.workspace_id)
            self.admission.workspaces.mark_changed(view.workspace_id)
        return self.origins.origin_of(view.workspace_id, number)

    def _refuse(self, path: WorkspacePath) -> Response:
        message = (
            "Only a person can open a workspace here. Programs send their token to its own address, the "
            f"url in GET /api/v1/workspaces/{path.workspace_id}"
        )
        return error_response(403, "FORBIDDEN", message)


def _target_on_origin(path: WorkspacePath) -> str:
    """Return the path on the workspace's origin."""
    return _safe_target((path.rest + path.query).decode("latin-1"))


def _safe_target(wanted: str) -> str:
    """Return the wanted path if it is safe to redirect to, otherwise `/`."""
    target = wanted.encode("latin-1", errors="replace")
    if TARGET.fullmatch(target) is None or target.startswith(INTERNAL_PATHS):
        return "/"
    return wanted
