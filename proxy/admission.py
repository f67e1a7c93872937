"""Access control: every request below `/w/` passes here."""

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
    WORKSPACE_PREFIX,
    Credentials,
    RequestKind,
    WorkspacePath,
    credentials_of,
    may_use_cookie,
)
from proxy.responses import Responses
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

ID_END = len(WORKSPACE_PREFIX) + ID_LENGTH
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
        return visit_of(self.head, self.credentials, self.workspace)


def visit_of(head: RequestHead, credentials: Credentials, workspace: CachedWorkspace) -> Visit:
    token = form_token_of(credentials.session, workspace.view.workspace_id) if credentials.session else ""
    return Visit(workspace.view, token, head.target.decode("latin-1"), datetime.now(UTC))


@dataclass
class Admission:
    """Checks the session or token, then the owner; both are cached for seconds."""

    callers: CallerCache
    workspaces: WorkspaceCache
    responses: Responses
    origins: Origins
    cookie: bytes
    outcomes: Counter[str] = field(default_factory=Counter)
    _credentials: dict[tuple[bytes | None, bytes | None], Credentials] = field(default_factory=dict)

    def admit_cached(self, head: RequestHead) -> tuple[CachedCaller, CachedWorkspace] | None:
        """Return the caller and the workspace if both are cached and the caller may use the workspace."""
        credentials = self.credentials_of(head)
        cached = self.callers.get(credentials)
        workspace = self.workspaces.get(
            WorkspaceId(head.target[len(WORKSPACE_PREFIX) : ID_END].decode("latin-1"))
        )
        if cached is None or workspace is None or workspace.view.owner_user_id != cached.caller.user_id:
            return None
        if credentials.session is not None and not may_use_cookie(head, self.origins):
            return None
        return cached, workspace

    async def admit(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> Admitted | Response:
        """Check the caller, the workspace and its owner, in this order; return a response if one fails."""
        credentials = self.credentials_of(head)
        if credentials.session is not None and not may_use_cookie(head, self.origins):
            return self._refuse("foreign_page", self.responses.cross_site())
        cached = await self.callers.find(credentials)
        if cached is None:
            return self._refuse("stranger", self.responses.unauthenticated(kind, head.target))
        workspace = await self.workspaces.find(path.workspace_id)
        if workspace is None:
            return self._refuse("not_found", self.responses.not_found(kind))
        if workspace.view.owner_user_id != cached.caller.user_id:
            return self._refuse("forbidden", self.responses.forbidden(kind, cached.caller.username))
        return Admitted(head, kind, path, credentials, cached, workspace)

    def credentials_of(self, head: RequestHead) -> Credentials:
        """Return the credentials of a request; most have been parsed before."""
        key = head.authorization, head.cookies
        credentials = self._credentials.get(key)
        if credentials is None:
            credentials = credentials_of(head.block, self.cookie)
            if len(self._credentials) >= MAX_CACHED:
                self._credentials.clear()
            if sum(len(each or b"") for each in key) <= MAX_CACHED_BYTES:
                self._credentials[key] = credentials
        return credentials

    def _refuse(self, reason: str, response: Response) -> Response:
        self.outcomes[reason] += 1
        return response
