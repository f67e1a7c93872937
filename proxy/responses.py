"""Responses of the proxy itself: a page for a person who opens one, JSON for everyone else."""

import json
from dataclasses import dataclass, field
from urllib.parse import quote

from codehub.db.views import WorkspaceView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import LimitScope, RunningLimits
from codehub.domain.states import DesiredState
from codehub.origins import Origins
from codehub.ports import Progress
from codehub.services.errors import DiskLimitExceeded, LimitExceeded
from codehub.services.recovery import archives_to_restore, choices_of
from proxy.decisions import Decision
from proxy.pages import Pages, Visit
from proxy.request_kind import RequestKind, WorkspacePath
from proxy.transport.routing import Response

RETRY_SECONDS = 5
SOON_SECONDS = 2
UNAUTHORIZED = 401
JSON_HEADERS = (
    ("Content-Type", "application/json"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)
# Messages for programs.
NOT_RUNNING = {
    Decision.OFFER_START: "The workspace was never started. Start it with PATCH desired_state=RUNNING.",
    Decision.OFFER_RESTORE: "The workspace is archived. Restore it with PATCH desired_state=RUNNING.",
    Decision.EXPLAIN_ERROR: "The workspace has failed. Its error says what to do.",
}


def error_response(
    status: int, code: str, message: str, *, retry_after: int | None = None, **more: object
) -> Response:
    """Return an error as JSON, for programs."""
    headers = list(JSON_HEADERS)
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    if status == UNAUTHORIZED:
        headers.append(("WWW-Authenticate", "Bearer"))
    error = {"code": code, "message": message, **more}
    return Response(status, tuple(headers), json.dumps({"error": error}, default=str).encode())


def redirect(status: int, location: str, *headers: tuple[str, str]) -> Response:
    return Response(status, (("Location", location), ("Cache-Control", "no-store"), *headers))


@dataclass(frozen=True)
class Responses:
    """The proxy's own responses on the main origin."""

    pages: Pages
    limits: RunningLimits
    base_path: str = ""

    def unauthenticated(self, kind: RequestKind, path: WorkspacePath) -> Response:
        """Redirect a browser to the sign-in page, which returns to the workspace."""
        if kind is RequestKind.NAVIGATION:
            wanted = quote(path.entrance + (path.rest + path.query).decode("latin-1"), safe="")
            return redirect(303, f"{self.base_path}/login?next={wanted}")
        return error_response(401, "UNAUTHORIZED", "Sign in, or send a personal token as a bearer token.")

    def cross_site(self) -> Response:
        message = "Pages of other sites cannot use your session. Open the workspace itself, or use a token."
        return error_response(403, "FORBIDDEN", message)

    def not_found(self, kind: RequestKind) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.not_found()
        return error_response(404, "WORKSPACE_NOT_FOUND", "There is no such workspace.")

    def forbidden(self, kind: RequestKind, username: str) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.forbidden(username)
        return error_response(
            403, "FORBIDDEN", "Only the owner can open this workspace, with a token that is valid for it."
        )

    def unavailable(self, kind: RequestKind) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.unavailable()
        message = "A service that CodeHub needs does not answer. Try again soon."
        return error_response(503, "DEPENDENCY_UNAVAILABLE", message, retry_after=SOON_SECONDS)

    def not_answering(self, kind: RequestKind, visit: Visit) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.not_answering(visit)
        message = "The IDE of the workspace does not answer. CodeHub is checking it. Try again soon."
        return error_response(502, "UPSTREAM_UNAVAILABLE", message, retry_after=RETRY_SECONDS)

    def following(self, kind: RequestKind, visit: Visit, progress: Progress | None) -> Response:
        view = visit.view
        if kind is RequestKind.NAVIGATION:
            # The operation in progress must end before the workspace can start.
            ends_first = view.desired_state not in {DesiredState.RUNNING, DesiredState.DELETED}
            return self.pages.following(visit, progress, then_open=ends_first)
        return self.stopped(view)

    def stopped(self, view: WorkspaceView) -> Response:
        """Refuse without starting the workspace: open tabs keep sending requests."""
        if view.lifecycle.is_settled:
            code = "WORKSPACE_STOPPED"
            message = "The workspace is stopped. Open its page or send X-CodeHub-Wake: true to start it."
        else:
            code = "WORKSPACE_BUSY"
            message = "The workspace is changing its state. Try again soon."
        return error_response(
            503, code, message, retry_after=RETRY_SECONDS, phase=view.phase, operation=view.operation
        )

    def not_running(self, kind: RequestKind, visit: Visit, decision: Decision) -> Response:
        view = visit.view
        if kind is not RequestKind.NAVIGATION:
            message = NOT_RUNNING[decision]
            return error_response(
                502, "UPSTREAM_UNAVAILABLE", message, phase=view.phase, error_reason=view.error_reason
            )
        if decision is Decision.OFFER_START:
            return self.pages.start_needed(visit)
        if decision is Decision.OFFER_RESTORE:
            return self.pages.restore_needed(visit)
        return self.pages.failed(visit, choices_of(view), archives_to_restore(view))

    def limit_reached(self, kind: RequestKind, visit: Visit, refused: LimitExceeded) -> Response:
        everyone = refused.scope is LimitScope.GLOBAL
        if kind is RequestKind.NAVIGATION:
            limit = self.limits.total if everyone else self.limits.per_user
            return self.pages.limit_reached(visit, refused.running, limit, everyone=everyone)
        running = [{"id": each.workspace_id, "name": each.name} for each in refused.running]
        return error_response(502, "LIMIT_EXCEEDED", str(refused), scope=refused.scope, running=running)

    def disk_limit_reached(self, kind: RequestKind, visit: Visit, refused: DiskLimitExceeded) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.disk_limit_reached(visit, str(refused))
        return error_response(502, "DISK_LIMIT_EXCEEDED", str(refused))

    def port_not_responding(self, kind: RequestKind, port: int) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.port_not_responding(port)
        message = f"No program answers on port {port} of the workspace."
        return error_response(502, "UPSTREAM_UNAVAILABLE", message, retry_after=RETRY_SECONDS)

    def port_stopped(self, kind: RequestKind, entrance: str) -> Response:
        """Tell a guest that the workspace is not running, and nothing else about it."""
        if kind is RequestKind.NAVIGATION:
            return self.pages.port_stopped(entrance)
        message = "The workspace is not running. Only its owner can start it."
        return error_response(503, "WORKSPACE_STOPPED", message, retry_after=RETRY_SECONDS)

    def port_unavailable(self, kind: RequestKind, message: str) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.port_unavailable(message)
        return error_response(409, "INVALID_STATE", message)

    def port_not_shared(self, kind: RequestKind, username: str) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self.pages.port_not_shared(username)
        return error_response(403, "FORBIDDEN", "This port is not shared with you.")


@dataclass(frozen=True)
class OwnOriginResponses(Responses):
    """Responses on a workspace's own origin, where the workspace's script can read everything.

    Sessions and forms belong to the main origin.
    """

    origins: Origins = field(kw_only=True)

    def unauthenticated(self, kind: RequestKind, path: WorkspacePath) -> Response:
        """Redirect a browser to the main origin, which returns with a ticket."""
        if kind is RequestKind.NAVIGATION:
            return self._to_main(path.workspace_id, (path.rest + path.query).decode("latin-1"), path.port)
        return super().unauthenticated(kind, path)

    def not_running(self, kind: RequestKind, visit: Visit, decision: Decision) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self._to_main(visit.view.workspace_id, visit.path, visit.port)
        return super().not_running(kind, visit, decision)

    def limit_reached(self, kind: RequestKind, visit: Visit, refused: LimitExceeded) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self._to_main(visit.view.workspace_id, visit.path, visit.port)
        return super().limit_reached(kind, visit, refused)

    def disk_limit_reached(self, kind: RequestKind, visit: Visit, refused: DiskLimitExceeded) -> Response:
        if kind is RequestKind.NAVIGATION:
            return self._to_main(visit.view.workspace_id, visit.path, visit.port)
        return super().disk_limit_reached(kind, visit, refused)

    def _to_main(self, workspace_id: WorkspaceId, target: str, port: int | None) -> Response:
        return redirect(303, self.origins.entrance_of(workspace_id, port) + target.removeprefix("/"))
