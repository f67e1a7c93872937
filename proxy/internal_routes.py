"""The routes below `/.codehub/` of a workspace, which the proxy's pages use."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState
from codehub.ports import ProgressBoard
from codehub.services.errors import DiskLimitExceeded, InvalidState, LimitExceeded, OperationInProgress
from codehub.words import CHOICES
from proxy.admission import Admitted
from proxy.caller_cache import CachedCaller
from proxy.forms import FORM_TYPE, MAX_FORM_BYTES, is_form_token, read_form, return_path
from proxy.lifecycle import Lifecycle
from proxy.pages import Visit
from proxy.progress_stream import follow_progress
from proxy.request_kind import INTERNAL_PATHS, RequestKind
from proxy.responses import Responses, error_response, redirect
from proxy.transport.routing import Collect, Response, Routed, Stream
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

STREAM_HEADERS = (
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),
)

Action = Callable[[CachedCaller, CachedWorkspace, Mapping[str, str]], Awaitable[None]]


@dataclass(frozen=True)
class OwnOriginRoutes:
    """On a workspace's own origin: progress only, because script there could submit any form."""

    workspaces: WorkspaceCache
    board: ProgressBoard

    def route(self, admitted: Admitted) -> Routed:
        """Route an admitted request."""
        name = admitted.path.rest.removeprefix(INTERNAL_PATHS)
        if name != b"progress" or admitted.head.method != b"GET":
            return error_response(404, "NOT_FOUND", "Nothing is at this path.")
        cached = admitted.cached_caller
        chunks = follow_progress(self.workspaces, self.board, admitted.workspace.view.workspace_id)
        return Stream(200, STREAM_HEADERS, chunks, cached.credential, cached.user_id)


@dataclass(frozen=True)
class InternalRoutes(OwnOriginRoutes):
    """On the main origin: also the forms that change a workspace."""

    lifecycle: Lifecycle
    responses: Responses

    def route(self, admitted: Admitted) -> Routed:
        head, name = admitted.head, admitted.path.rest.removeprefix(INTERNAL_PATHS)
        if name == b"progress":
            return super().route(admitted)
        if name == b"stop" and admitted.kind is RequestKind.NAVIGATION:
            return self._confirm_stop(admitted)
        action = self._actions().get(name)
        if action is None:
            return error_response(404, "NOT_FOUND", "Nothing is at this path.")
        if head.method != b"POST":
            return error_response(
                405, "METHOD_NOT_ALLOWED", "This path takes only forms of CodeHub's pages, sent with POST."
            )
        if (head.get(b"content-type") or b"").split(b";")[0].strip() != FORM_TYPE:
            message = "This path takes only forms of CodeHub's pages. Programs use the API."
            return error_response(415, "INVALID_REQUEST", message)
        return Collect(MAX_FORM_BYTES, partial(self._submit, action, admitted))

    def _confirm_stop(self, admitted: Admitted) -> Response:
        """Return a page with the form: the page that links here must not have this workspace's form token."""
        visit = _return_visit(admitted, read_form(admitted.path.query.removeprefix(b"?")) or {})
        if visit.view.desired_state is not DesiredState.RUNNING:
            return redirect(303, self.responses.base_path + visit.path)
        return self.responses.pages.confirm_stop(visit)

    def _actions(self) -> Mapping[bytes, Action]:
        return {
            b"start": self._start,
            b"stop": self._stop,
            b"recover": self._recover,
            b"undelete": self._undelete,
            b"purge": self._purge,
        }

    async def _submit(self, action: Action, admitted: Admitted, body: bytes) -> Routed:
        cached, workspace = admitted.cached_caller, admitted.workspace
        workspace_id = workspace.view.workspace_id
        form = read_form(body)
        # Form tokens belong to sessions; a program with a personal token uses the API.
        if form is None or not is_form_token(
            form.get("token", ""), admitted.credentials.session, workspace_id
        ):
            return self.responses.pages.rejected_form()
        visit = _return_visit(admitted, form)
        try:
            await action(cached, workspace, form)
        except LimitExceeded as refused:
            return self.responses.limit_reached(RequestKind.NAVIGATION, visit, refused)
        except DiskLimitExceeded as refused:
            return self.responses.disk_limit_reached(RequestKind.NAVIGATION, visit, refused)
        except (OperationInProgress, InvalidState):
            # The workspace has changed since the page was made; the next page shows its state.
            pass
        self.workspaces.mark_changed(workspace_id)
        return redirect(303, self.responses.base_path + visit.path)

    async def _start(
        self, cached: CachedCaller, workspace: CachedWorkspace, _form: Mapping[str, str]
    ) -> None:
        await self.lifecycle.start(cached.caller, workspace.view)

    async def _stop(self, cached: CachedCaller, workspace: CachedWorkspace, _form: Mapping[str, str]) -> None:
        await self.lifecycle.stop(cached.caller, workspace.view)

    async def _recover(
        self, cached: CachedCaller, workspace: CachedWorkspace, form: Mapping[str, str]
    ) -> None:
        wanted = form.get("choice")
        choice = RecoverChoice(wanted) if wanted in set(RecoverChoice) else None
        if choice and CHOICES[choice].consequence and not _has_consented(form):
            return
        archive = _archive(form)
        if archive is None and "archive" in form:
            return
        await self.lifecycle.recover(cached.caller, workspace.view, choice, archive)

    async def _undelete(
        self, cached: CachedCaller, workspace: CachedWorkspace, _form: Mapping[str, str]
    ) -> None:
        await self.lifecycle.undelete(cached.caller, workspace.view)

    async def _purge(self, cached: CachedCaller, workspace: CachedWorkspace, form: Mapping[str, str]) -> None:
        if workspace.lifecycle.needs_person and _has_consented(form):
            await self.lifecycle.purge(cached.caller, workspace.view)


def _has_consented(form: Mapping[str, str]) -> bool:
    """Return whether the person has confirmed giving up files; browsers already require that."""
    return form.get("understood") == "yes"


def _archive(form: Mapping[str, str]) -> UUID | None:
    try:
        return UUID(form["archive"])
    except (KeyError, ValueError):
        return None


def _return_visit(admitted: Admitted, fields: Mapping[str, str]) -> Visit:
    """Return the visit with the path that the previous page asks to return to."""
    path = return_path(fields.get("next", ""), admitted.workspace.view.workspace_id)
    return replace(admitted.visit, path=path)
