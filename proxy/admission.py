"""Access control: every request to a workspace passes here."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from codehub.domain.conditions import WorkspaceId
from proxy.caller_cache import CachedCaller, CallerCache
from proxy.forms import form_token_of
from proxy.pages import Visit
from proxy.request_kind import (
    Credentials,
    IsOwnOrigin,
    RequestKind,
    WorkspacePath,
    credentials_of,
    may_use_cookie,
)
from proxy.responses import Responses
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

MAX_CACHED = 1024
MAX_CACHED_BYTES = 4096


@dataclass(frozen=True)
class Admitted:
    """A request by the owner of the workspace."""

    head: RequestHead
    kind: RequestKind
    path: WorkspacePath
    credentials: Credentials
    cached_caller: CachedCaller
    workspace: CachedWorkspace

    @property
    def visit(self) -> Visit:
        return visit_of(self.head, self.credentials, self.workspace, self.path.port)


def visit_of(
    head: RequestHead, credentials: Credentials, workspace: CachedWorkspace, port: int | None = None
) -> Visit:
    token = form_token_of(credentials.session, workspace.view.workspace_id) if credentials.session else ""
    return Visit(workspace.view, token, head.target.decode("latin-1"), datetime.now(UTC), port)


@dataclass
class Admission:
    """Checks the session or token, then the owner; both are cached for seconds."""

    callers: CallerCache
    workspaces: WorkspaceCache
    responses: Responses
    is_own_origin: IsOwnOrigin
    cookie: bytes
    # Whether the cookie is a workspace's instead of the session's.
    of_workspace: bool = False
    # Whether browsers say where a request comes from.
    names_site: bool = True
    outcomes: Counter[str] = field(default_factory=Counter)
    _credentials: dict[tuple[bytes | None, bytes | None], Credentials] = field(default_factory=dict)

    def admit_cached(
        self, head: RequestHead, workspace_id: WorkspaceId
    ) -> tuple[CachedCaller, CachedWorkspace] | None:
        """Return the caller and the workspace if both are cached and the caller may use the workspace."""
        credentials = self.credentials_of(head)
        cached = self.callers.get(credentials)
        workspace = self.workspaces.get(workspace_id)
        if cached is None or workspace is None:
            return None
        if not cached.caller.may_enter(workspace_id, workspace.view.owner_user_id):
            return None
        if credentials.token is None and not self._may_enter_with_cookie(head, cached, workspace_id):
            return None
        return cached, workspace

    async def admit(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Admitted | Response:
        """Check the caller, the workspace and its owner, in this order; return a response if one fails."""
        credentials = self.credentials_of(head)
        has_cookie = credentials.session is not None or credentials.workspace is not None
        if has_cookie and not self.may_use_cookie(head):
            return self._refuse("foreign_page", self.responses.cross_site())
        cached = await self.callers.find(credentials)
        if cached is None or cached.only_for not in {None, path.workspace_id}:
            return self._refuse("stranger", self.responses.unauthenticated(kind, path))
        workspace = await self.workspaces.find(path.workspace_id)
        if workspace is None:
            return self._refuse("not_found", self.responses.not_found(kind))
        if not cached.caller.may_enter(path.workspace_id, workspace.view.owner_user_id):
            return self._refuse("forbidden", self.responses.forbidden(kind, cached.caller.username))
        return Admitted(head, kind, path, credentials, cached, workspace)

    def credentials_of(self, head: RequestHead) -> Credentials:
        """Return the credentials of a request; most have been parsed before."""
        key = head.authorization, head.cookies
        credentials = self._credentials.get(key)
        if credentials is None:
            credentials = credentials_of(head.block, self.cookie, of_workspace=self.of_workspace)
            if len(self._credentials) >= MAX_CACHED:
                self._credentials.clear()
            if sum(len(each or b"") for each in key) <= MAX_CACHED_BYTES:
                self._credentials[key] = credentials
        return credentials

    def may_use_cookie(self, head: RequestHead) -> bool:
        """Return whether the cookie counts for this request."""
        return may_use_cookie(head, self.is_own_origin, names_site=self.names_site)

    def _may_enter_with_cookie(
        self, head: RequestHead, cached: CachedCaller, workspace_id: WorkspaceId
    ) -> bool:
        only_for = cached.only_for
        return (only_for is None or only_for == workspace_id) and self.may_use_cookie(head)

    def _refuse(self, reason: str, response: Response) -> Response:
        self.outcomes[reason] += 1
        return response


@dataclass
class PortAdmission(Admission):
    """For port mode: browsers send all cookies of the host, so the cookie's name contains the port."""

    def credentials_of(self, head: RequestHead) -> Credentials:
        cookie = self.cookie + b"_" + (head.host or b"").rpartition(b":")[2]
        return credentials_of(head.block, cookie, of_workspace=True)
