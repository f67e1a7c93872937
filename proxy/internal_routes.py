"""Below `/w/{id}/.codehub/`: what the pages of the proxy itself need."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState
from codehub.ports import ProgressBoard
from codehub.services.errors import InvalidState, LimitExceeded, OperationInProgress
from codehub.words import CHOICES
from proxy.admission import Admitted
from proxy.caller_cache import CachedCaller
from proxy.error_responses import error_response, redirect
from proxy.forms import FORM_TYPE, MAX_FORM_BYTES, is_form_token, read_form, way_back
from proxy.lifecycle import Lifecycle
from proxy.pages import Visit
from proxy.progress_stream import follow
from proxy.request_kind import OWN_PATHS, RequestKind
from proxy.responses import Responses
from proxy.transport.routing import Collect, Response, Routed, Stream
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

STREAM_HEADERS = (
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),
)

Act = Callable[[CachedCaller, CachedWorkspace, Mapping[str, str]], Awaitable[None]]


@dataclass(frozen=True)
class InternalRoutes:
    """For whoever has passed all checks already."""

    directory: WorkspaceCache
    board: ProgressBoard
    lifecycle: Lifecycle
    replies: Responses

    def route(self, admitted: Admitted) -> Routed:
        head, name = admitted.head, admitted.path.rest.removeprefix(OWN_PATHS)
        if name == b"progress" and head.method == b"GET":
            return self._progress(admitted.known, admitted.place)
        if name == b"stop" and admitted.ask is RequestKind.NAVIGATION:
            return self._confirm_stop(admitted)
        act = self._acts().get(name)
        if act is None:
            return error_response(404, "NOT_FOUND", "The proxy has nothing at this path.")
        if head.method != b"POST":
            return error_response(
                405, "METHOD_NOT_ALLOWED", "This is for the forms of CodeHub's own pages: POST."
            )
        if (head.get(b"content-type") or b"").split(b";")[0].strip() != FORM_TYPE:
            message = "This is for the forms of CodeHub's own pages; programs use the API."
            return error_response(415, "INVALID_REQUEST", message)
        return Collect(MAX_FORM_BYTES, partial(self._submit, act, admitted))

    def _progress(self, known: CachedCaller, place: CachedWorkspace) -> Stream:
        pieces = follow(self.directory, self.board, place.view.workspace_id)
        return Stream(200, STREAM_HEADERS, pieces, known.credential, known.holder)

    def _confirm_stop(self, admitted: Admitted) -> Response:
        """For a link on another workspace's page, which must not have this one's token."""
        visit = _visit_from(admitted, read_form(admitted.path.query.removeprefix(b"?")) or {})
        if visit.view.desired_state is not DesiredState.RUNNING:
            return redirect(303, self.replies.base_path + visit.path)
        return self.replies.pages.confirm_stop(visit)

    def _acts(self) -> Mapping[bytes, Act]:
        return {
            b"start": self._start,
            b"stop": self._stop,
            b"recover": self._recover,
            b"undelete": self._undelete,
            b"purge": self._purge,
        }

    async def _submit(self, act: Act, admitted: Admitted, body: bytes) -> Routed:
        known, place = admitted.known, admitted.place
        workspace_id = place.view.workspace_id
        form = read_form(body)
        # Only a session has a form's token; a program with a personal token uses the API.
        if form is None or not is_form_token(form.get("token", ""), admitted.shown.session, workspace_id):
            return self.replies.pages.rejected_form()
        visit = _visit_from(admitted, form)
        try:
            await act(known, place, form)
        except LimitExceeded as refused:
            return self.replies.limit_reached(RequestKind.NAVIGATION, visit, refused)
        except (OperationInProgress, InvalidState):
            # It has moved on since the page was made; the page that it is sent to says where it is.
            pass
        self.directory.note_change(workspace_id)
        return redirect(303, self.replies.base_path + visit.path)

    async def _start(self, known: CachedCaller, place: CachedWorkspace, _form: Mapping[str, str]) -> None:
        await self.lifecycle.start(known.caller, place.view)

    async def _stop(self, known: CachedCaller, place: CachedWorkspace, _form: Mapping[str, str]) -> None:
        await self.lifecycle.stop(known.caller, place.view)

    async def _recover(self, known: CachedCaller, place: CachedWorkspace, form: Mapping[str, str]) -> None:
        wanted = form.get("choice")
        choice = RecoverChoice(wanted) if wanted in set(RecoverChoice) else None
        if choice and CHOICES[choice].consequence and not _is_understood(form):
            return
        archive = _archive(form)
        if archive is None and "archive" in form:
            return
        await self.lifecycle.recover(known.caller, place.view, choice, archive)

    async def _undelete(self, known: CachedCaller, place: CachedWorkspace, _form: Mapping[str, str]) -> None:
        await self.lifecycle.undelete(known.caller, place.view)

    async def _purge(self, known: CachedCaller, place: CachedWorkspace, form: Mapping[str, str]) -> None:
        if place.lifecycle.needs_person and _is_understood(form):
            await self.lifecycle.purge(known.caller, place.view)


def _is_understood(form: Mapping[str, str]) -> bool:
    """A browser insists on the tick already; whoever gives up files must have seen what that means."""
    return form.get("understood") == "yes"


def _archive(form: Mapping[str, str]) -> UUID | None:
    try:
        return UUID(form["archive"])
    except (KeyError, ValueError):
        return None


def _visit_from(admitted: Admitted, fields: Mapping[str, str]) -> Visit:
    """The visit of whoever comes from a page of ours, which says where to go next."""
    path = way_back(fields.get("next", ""), admitted.place.view.workspace_id)
    return replace(admitted.visit, path=path)
