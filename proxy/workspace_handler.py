"""Serves the owner of a workspace: the IDE, or a page that says why it is not there and what to do."""

from collections import Counter
from dataclasses import dataclass, field, replace

from codehub.origins import RESERVED_COOKIES
from codehub.ports import ProgressBoard, Upstream
from codehub.services.credentials import API_TOKEN_PREFIX
from codehub.services.errors import (
    DiskLimitExceeded,
    InvalidState,
    LimitExceeded,
    OperationInProgress,
    WorkspaceNotFound,
)
from proxy.activity import ActivityLog
from proxy.admission import Admitted
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

OUR_COOKIES = tuple(prefix.lower().encode() for prefix in RESERVED_COOKIES)
TOKEN_PREFIX = API_TOKEN_PREFIX.encode()


@dataclass
class WorkspaceHandler:
    """Carries out the decisions of `decide`."""

    workspaces: WorkspaceCache
    lifecycle: Lifecycle
    board: ProgressBoard
    activity_log: ActivityLog
    responses: Responses
    # Bytes of the target to strip before the IDE's path: none on a workspace's own origin.
    prefix_length: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    async def serve(self, admitted: Admitted) -> Routed:
        workspace = admitted.workspace
        decision = decide(workspace.lifecycle, admitted.kind)
        if decision is Decision.FORWARD:
            return await self.open(admitted)
        if decision is Decision.WAKE:
            return await self._wake(admitted)
        if decision is Decision.FOLLOW:
            return await self._follow(admitted)
        if decision is Decision.REFUSE:
            return self._count("stopped", self.responses.stopped(workspace.view))
        return self._count(
            decision.value, self.responses.not_running(admitted.kind, admitted.visit, decision)
        )

    async def open(self, admitted: Admitted) -> Routed:
        """Forward to the IDE of a running workspace."""
        upstream = await self.workspaces.find_upstream(admitted.workspace)
        if upstream is None:
            return self.not_answering(admitted.kind, admitted.visit)
        return self.forward(admitted.head, admitted.cached_caller, admitted.workspace, upstream)

    def forward(
        self, head: RequestHead, cached: CachedCaller, workspace: CachedWorkspace, upstream: Upstream
    ) -> Forward:
        target = head.target
        rest = target[self.prefix_length :]
        workspace_id = workspace.view.workspace_id
        authorization = head.authorization
        return Forward(
            upstream=upstream,
            pool_key=workspace_id,
            target=target if upstream.keep_prefix else rest,
            drop_cookies=OUR_COOKIES,
            drop_authorization=authorization is not None and TOKEN_PREFIX in authorization,
            observer=self.activity_log.observe(workspace_id, upstream.ide, rest.partition(b"?")[0]),
            credential=cached.credential,
            user=cached.user_id,
            plain_messages=True,
        )

    def not_answering(self, kind: RequestKind, visit: Visit) -> Response:
        """Respond for an IDE that should answer; have the instance checked at once."""
        self.lifecycle.request_check(visit.view)
        return self._count("not_answering", self.responses.not_answering(kind, visit))

    async def _wake(self, admitted: Admitted) -> Routed:
        view = admitted.workspace.view
        try:
            await self.lifecycle.start(admitted.cached_caller.caller, view)
        except LimitExceeded as refused:
            response = self.responses.limit_reached(admitted.kind, admitted.visit, refused)
            return self._count("limit", response)
        except DiskLimitExceeded as refused:
            response = self.responses.disk_limit_reached(admitted.kind, admitted.visit, refused)
            return self._count("disk_limit", response)
        except (OperationInProgress, InvalidState):
            # Another request was faster; respond with what it has led to.
            pass
        self.workspaces.mark_changed(view.workspace_id)
        woken = await self.workspaces.find(view.workspace_id)
        if woken is None:
            raise WorkspaceNotFound(view.workspace_id)
        admitted = replace(admitted, workspace=woken)
        if decide(woken.lifecycle, admitted.kind) is Decision.WAKE:
            return await self._follow(admitted)
        return await self.serve(admitted)

    async def _follow(self, admitted: Admitted) -> Response:
        progress = await progress_of(self.board, admitted.workspace.view)
        return self._count("following", self.responses.following(admitted.kind, admitted.visit, progress))

    def _count(self, outcome: str, response: Response) -> Response:
        self.outcomes[outcome] += 1
        return response
