"""What somebody who may use a workspace gets: its IDE, or a page about why not and what next."""

from collections import Counter
from dataclasses import dataclass, field, replace

from codehub.origins import HOST_COOKIE, PLAIN_COOKIE
from codehub.ports import ProgressBoard, Upstream
from codehub.services.credentials import API_TOKEN_PREFIX
from codehub.services.errors import InvalidState, LimitExceeded, OperationInProgress, WorkspaceNotFound
from proxy.activity import ActivityLog
from proxy.admission import ID_END, Admitted
from proxy.caller_cache import CachedCaller
from proxy.decisions import Decision, decide
from proxy.lifecycle import Lifecycle
from proxy.pages import Visit
from proxy.progress_stream import progress_of
from proxy.request_kind import RequestKind
from proxy.responses import Responses
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward, Response, Routed
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

OUR_COOKIES = frozenset({PLAIN_COOKIE.encode(), HOST_COOKIE.encode()})
OUR_TOKENS = API_TOKEN_PREFIX.encode()


@dataclass
class WorkspaceHandler:
    """Acts on what `decide` says."""

    directory: WorkspaceCache
    lifecycle: Lifecycle
    board: ProgressBoard
    book: ActivityLog
    replies: Responses
    outcomes: Counter[str] = field(default_factory=Counter)

    async def serve(self, admitted: Admitted) -> Routed:
        place = admitted.place
        decision = decide(place.lifecycle, admitted.ask)
        if decision is Decision.FORWARD:
            upstream = await self.directory.find_upstream(place)
            if upstream is None:
                return self.not_answering(admitted.ask, admitted.visit)
            return self.forward(admitted.head, admitted.known, place, upstream)
        if decision is Decision.WAKE:
            return await self._wake(admitted)
        if decision is Decision.FOLLOW:
            return await self._follow(admitted)
        if decision is Decision.REFUSE:
            return self._tell("stopped", self.replies.stopped(place.view))
        return self._tell(decision.value, self.replies.at_rest(admitted.ask, admitted.visit, decision))

    def forward(
        self, head: RequestHead, known: CachedCaller, place: CachedWorkspace, upstream: Upstream
    ) -> Forward:
        rest = head.target[ID_END:]
        workspace_id = place.view.workspace_id
        authorization = head.authorization
        return Forward(
            upstream=upstream,
            pool_key=workspace_id,
            target=head.target if upstream.keep_prefix else rest,
            drop_cookies=OUR_COOKIES,
            drop_authorization=authorization is not None and OUR_TOKENS in authorization,
            observer=self.book.observe(workspace_id, upstream.ide, rest.partition(b"?")[0]),
            credential=known.credential,
            user=known.holder,
            plain_messages=True,
        )

    def not_answering(self, ask: RequestKind, visit: Visit) -> Response:
        """It should answer, so somebody should look after it now."""
        self.lifecycle.look_after(visit.view)
        return self._tell("not_answering", self.replies.not_answering(ask, visit))

    async def _wake(self, admitted: Admitted) -> Routed:
        view = admitted.place.view
        try:
            await self.lifecycle.start(admitted.known.caller, view)
        except LimitExceeded as refused:
            answer = self.replies.limit_reached(admitted.ask, admitted.visit, refused)
            return self._tell("limit", answer)
        except (OperationInProgress, InvalidState):
            # Somebody else was quicker; what came of that is what the answer is about.
            pass
        self.directory.note_change(view.workspace_id)
        woken = await self.directory.look(view.workspace_id)
        if woken is None:
            raise WorkspaceNotFound(view.workspace_id)
        admitted = replace(admitted, place=woken)
        if decide(woken.lifecycle, admitted.ask) is Decision.WAKE:
            return await self._follow(admitted)
        return await self.serve(admitted)

    async def _follow(self, admitted: Admitted) -> Response:
        progress = await progress_of(self.board, admitted.place.view)
        return self._tell("following", self.replies.following(admitted.ask, admitted.visit, progress))

    def _tell(self, what: str, answer: Response) -> Response:
        self.outcomes[what] += 1
        return answer
