"""What is said where nothing is forwarded: a page to somebody who opened one, JSON to everybody else."""

from dataclasses import dataclass
from urllib.parse import quote

from codehub.db.views import WorkspaceView
from codehub.domain.limits import LimitScope, RunningLimits
from codehub.domain.states import DesiredState
from codehub.ports import Progress
from codehub.services.errors import LimitExceeded
from codehub.services.recovery import archives_to_restore, choices_of
from proxy.decisions import Decision
from proxy.error_responses import error_response, redirect
from proxy.pages import Pages, Visit
from proxy.request_kind import RequestKind
from proxy.transport.routing import Response

RETRY_SECONDS = 5
SOON_SECONDS = 2
# What a program is told, with the code and the status.
AT_REST = {
    Decision.OFFER_START: "The workspace was never started: start it with PATCH desired_state=RUNNING.",
    Decision.OFFER_RESTORE: "The workspace is archived: restore it with PATCH desired_state=RUNNING.",
    Decision.EXPLAIN_ERROR: "The workspace failed and needs you: its error says what to do.",
}


@dataclass(frozen=True)
class Responses:
    """Every answer of the front door's own."""

    pages: Pages
    limits: RunningLimits
    base_path: str = ""

    def stranger(self, ask: RequestKind, target: bytes) -> Response:
        """A browser goes to the sign-in page, and back from there."""
        if ask is RequestKind.NAVIGATION:
            wanted = quote(target.decode("latin-1"), safe="")
            return redirect(303, f"{self.base_path}/login?next={wanted}")
        return error_response(401, "UNAUTHORIZED", "Sign in, or send a personal token as a bearer.")

    def foreign_page(self) -> Response:
        message = "A page of another site cannot use your session; open the workspace itself, or use a token."
        return error_response(403, "FORBIDDEN", message)

    def not_found(self, ask: RequestKind) -> Response:
        if ask is RequestKind.NAVIGATION:
            return self.pages.not_found()
        return error_response(404, "WORKSPACE_NOT_FOUND", "There is no such workspace.")

    def forbidden(self, ask: RequestKind, username: str) -> Response:
        if ask is RequestKind.NAVIGATION:
            return self.pages.forbidden(username)
        return error_response(403, "FORBIDDEN", "This is somebody else's workspace.")

    def unavailable(self, ask: RequestKind) -> Response:
        if ask is RequestKind.NAVIGATION:
            return self.pages.unavailable()
        message = "A service that CodeHub needs does not answer; it is tried again by itself. Repeat it soon."
        return error_response(503, "DEPENDENCY_UNAVAILABLE", message, retry_after=SOON_SECONDS)

    def not_answering(self, ask: RequestKind, visit: Visit) -> Response:
        if ask is RequestKind.NAVIGATION:
            return self.pages.not_answering(visit)
        message = "The workspace's IDE does not answer; CodeHub looks after it. Repeat the request soon."
        return error_response(502, "UPSTREAM_UNAVAILABLE", message, retry_after=RETRY_SECONDS)

    def following(self, ask: RequestKind, visit: Visit, progress: Progress | None) -> Response:
        view = visit.view
        if ask is RequestKind.NAVIGATION:
            # What has to end first is followed by what the visitor came for.
            ends_first = view.desired_state not in {DesiredState.RUNNING, DesiredState.DELETED}
            return self.pages.following(visit, progress, then_open=ends_first)
        return self.stopped(view)

    def stopped(self, view: WorkspaceView) -> Response:
        """Never a wake: tabs that are merely open ask for ever."""
        if view.lifecycle.is_settled:
            code = "WORKSPACE_STOPPED"
            message = "The workspace is stopped: open its page, or send X-CodeHub-Wake: true to start it."
        else:
            code = "WORKSPACE_BUSY"
            message = "The workspace is on its way to another state; repeat the request then."
        return error_response(
            503, code, message, retry_after=RETRY_SECONDS, phase=view.phase, operation=view.operation
        )

    def at_rest(self, ask: RequestKind, visit: Visit, decision: Decision) -> Response:
        view = visit.view
        if ask is not RequestKind.NAVIGATION:
            message = AT_REST[decision]
            return error_response(
                502, "UPSTREAM_UNAVAILABLE", message, phase=view.phase, error_reason=view.error_reason
            )
        if decision is Decision.OFFER_START:
            return self.pages.start_needed(visit)
        if decision is Decision.OFFER_RESTORE:
            return self.pages.restore_needed(visit)
        return self.pages.failed(visit, choices_of(view), archives_to_restore(view))

    def limit_reached(self, ask: RequestKind, visit: Visit, refused: LimitExceeded) -> Response:
        everyone = refused.scope is LimitScope.GLOBAL
        if ask is RequestKind.NAVIGATION:
            limit = self.limits.total if everyone else self.limits.per_user
            return self.pages.limit_reached(visit, refused.running, limit, everyone=everyone)
        running = [{"id": each.workspace_id, "name": each.name} for each in refused.running]
        return error_response(502, "LIMIT_EXCEEDED", str(refused), scope=refused.scope, running=running)
