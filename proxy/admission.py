"""Who may pass to which workspace: the one place that every request below `/w/` goes through."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from codehub.domain.conditions import WorkspaceId
from codehub.origins import Origins
from proxy.caller_cache import CachedCaller, CallerCache
from proxy.forms import form_token_of
from proxy.pages import Visit
from proxy.request_kind import (
    ID_LENGTH,
    WORKSPACES,
    RequestKind,
    Shown,
    WorkspacePath,
    cookie_may_speak,
    shown_by,
)
from proxy.responses import Responses
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

ID_END = len(WORKSPACES) + ID_LENGTH
MAX_MEMORISED = 1024
MAX_MEMORISED_BYTES = 4096


@dataclass(frozen=True)
class Admitted:
    """A request of somebody who may use the workspace."""

    head: RequestHead
    ask: RequestKind
    path: WorkspacePath
    shown: Shown
    known: CachedCaller
    place: CachedWorkspace

    @property
    def visit(self) -> Visit:
        return visit_of(self.head, self.shown, self.place)


def visit_of(head: RequestHead, shown: Shown, place: CachedWorkspace) -> Visit:
    token = form_token_of(shown.session, place.view.workspace_id) if shown.session else ""
    return Visit(place.view, token, head.target.decode("latin-1"), datetime.now(UTC))


@dataclass
class Admission:
    """Session or token, then owner; what was found out is remembered for seconds."""

    callers: CallerCache
    directory: WorkspaceCache
    replies: Responses
    origins: Origins
    cookie: bytes
    outcomes: Counter[str] = field(default_factory=Counter)
    _shown: dict[tuple[bytes | None, bytes | None], Shown] = field(default_factory=dict)

    def recall(self, head: RequestHead) -> tuple[CachedCaller, CachedWorkspace] | None:
        """Who asks for what, if all of that is known and sure and the one may use the other."""
        shown = self.shown_by(head)
        known = self.callers.get(shown)
        place = self.directory.get(WorkspaceId(head.target[len(WORKSPACES) : ID_END].decode("latin-1")))
        if known is None or place is None or place.view.owner_user_id != known.caller.user_id:
            return None
        if shown.session is not None and not cookie_may_speak(head, self.origins):
            return None
        return known, place

    async def admit(self, head: RequestHead, path: WorkspacePath, ask: RequestKind) -> Admitted | Response:
        """Who is it, is there such a workspace, whose is it: in this order."""
        shown = self.shown_by(head)
        if shown.session is not None and not cookie_may_speak(head, self.origins):
            return self._refuse("foreign_page", self.replies.foreign_page())
        known = await self.callers.find(shown)
        if known is None:
            return self._refuse("stranger", self.replies.stranger(ask, head.target))
        place = await self.directory.look(path.workspace_id)
        if place is None:
            return self._refuse("not_found", self.replies.not_found(ask))
        if place.view.owner_user_id != known.caller.user_id:
            return self._refuse("forbidden", self.replies.forbidden(ask, known.caller.username))
        return Admitted(head, ask, path, shown, known, place)

    def shown_by(self, head: RequestHead) -> Shown:
        """Most of them have been read before."""
        key = head.authorization, head.cookies
        shown = self._shown.get(key)
        if shown is None:
            shown = shown_by(head.block, self.cookie)
            if len(self._shown) >= MAX_MEMORISED:
                self._shown.clear()
            if sum(len(each or b"") for each in key) <= MAX_MEMORISED_BYTES:
                self._shown[key] = shown
        return shown

    def _refuse(self, reason: str, answer: Response) -> Response:
        self.outcomes[reason] += 1
        return answer
