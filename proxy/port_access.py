"""Decides who may open a port of a workspace: the owner and those it is shared with; see ADR 0045."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import Audience, Sharing, audience_of
from codehub.services.identity import Credential
from proxy.admission import Admission
from proxy.caller_cache import CachedCaller
from proxy.request_kind import Credentials, RequestKind, WorkspacePath, WorkspacePort
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response
from proxy.workspace_cache import CachedWorkspace, WorkspaceCache

# Prefix of guests' credentials: their connections also end with the share.
GUEST = "guest"


@dataclass(frozen=True, slots=True)
class PortVisitor:
    """Someone who may open the port: the owner or a guest. An anonymous guest has no caller."""

    workspace: CachedWorkspace
    port: int
    caller: CachedCaller | None
    is_owner: bool

    @property
    def credential(self) -> str:
        """Return the key by which open connections end when it is revoked."""
        session = self.caller.credential if self.caller else ""
        if self.is_owner:
            return session
        return f"{GUEST} {self.workspace.view.workspace_id} {self.port} {session}"


@dataclass
class PortAccess:
    """Checks every request to a port. The main origin and the ports' origins have one each."""

    admission: Admission
    sharing: Sharing
    outcomes: Counter[str] = field(default_factory=Counter)

    def find_cached(self, head: RequestHead, target: WorkspacePort) -> PortVisitor | None:
        """Return the visitor if everything needed is cached."""
        credentials = self.admission.credentials_of(head)
        cached = self.admission.callers.get(credentials)
        workspace = self.admission.workspaces.get(target.workspace_id)
        if workspace is None or (cached is None and any(credentials)):
            return None
        return self._admit(head, target, credentials, cached, workspace)

    async def find(self, head: RequestHead, path: WorkspacePath, kind: RequestKind) -> PortVisitor | Response:
        """Return the visitor, or a response that refuses the request."""
        credentials, target = self.admission.credentials_of(head), port_of(path)
        cached = await self.admission.callers.find(credentials)
        workspace = await self.admission.workspaces.find(path.workspace_id)
        visitor = self._admit(head, target, credentials, cached, workspace) if workspace else None
        return visitor or self._refuse(head, path, kind, cached, workspace)

    def _admit(
        self,
        head: RequestHead,
        target: WorkspacePort,
        credentials: Credentials,
        cached: CachedCaller | None,
        workspace: CachedWorkspace,
    ) -> PortVisitor | None:
        known = cached if cached and self._counts(head, target, credentials, cached) else None
        if known and known.caller.may_enter(target.workspace_id, workspace.view.owner_user_id):
            return PortVisitor(workspace, target.port, known, is_owner=True)
        audience = audience_of(workspace.view.port_shares, target.port, datetime.now(UTC), self.sharing)
        if audience is Audience.PUBLIC:
            return PortVisitor(workspace, target.port, None, is_owner=False)
        # A token opens only its user's own workspaces.
        if audience is Audience.USERS and known and known.caller.credential is Credential.SESSION:
            return PortVisitor(workspace, target.port, known, is_owner=False)
        return None

    def _counts(
        self, head: RequestHead, target: WorkspacePort, credentials: Credentials, cached: CachedCaller
    ) -> bool:
        """Return whether the credential is for this port and not sent by a page of another origin."""
        if cached.only_for not in {None, target.label}:
            return False
        return credentials.token is not None or self.admission.may_use_cookie(head)

    def _refuse(
        self,
        head: RequestHead,
        path: WorkspacePath,
        kind: RequestKind,
        cached: CachedCaller | None,
        workspace: CachedWorkspace | None,
    ) -> Response:
        responses = self.admission.responses
        if cached is None or cached.only_for not in {None, port_of(path).label}:
            self.outcomes["stranger"] += 1
            return responses.unauthenticated(kind, path)
        has_cookie = cached.caller.credential is Credential.SESSION
        if has_cookie and not self.admission.may_use_cookie(head):
            self.outcomes["foreign_page"] += 1
            return responses.cross_site()
        if workspace is None:
            self.outcomes["not_found"] += 1
            return responses.not_found(kind)
        self.outcomes["forbidden"] += 1
        return responses.port_not_shared(kind, cached.caller.username)


def port_of(path: WorkspacePath) -> WorkspacePort:
    if path.port is None:
        raise ValueError("the path is the IDE's")
    return WorkspacePort(path.workspace_id, path.port, f"{path.port}--{path.workspace_id}")


@dataclass(frozen=True)
class Guests:
    """The open connections of guests."""

    workspaces: WorkspaceCache
    sharing: Sharing

    def sessions(self, credentials: Collection[str]) -> set[str]:
        """Return the sessions behind these credentials of guests."""
        return {session for _, _, session in map(_parse, credentials) if session}

    async def find_ended(self, credentials: Collection[str], invalid: Collection[str]) -> set[str]:
        """Return the guests whose session is invalid or whose port is no longer shared with them."""
        ended = set()
        for credential in credentials:
            workspace_id, port, session = _parse(credential)
            # The lookup also keeps the workspace in the cache, which is refreshed every few seconds.
            workspace = await self.workspaces.find(workspace_id)
            shares = workspace.view.port_shares if workspace else {}
            audience = audience_of(shares, port, datetime.now(UTC), self.sharing)
            needs_session = audience is Audience.USERS
            if audience is None or session in invalid or (needs_session and not session):
                ended.add(credential)
        return ended


def is_guest(credential: str) -> bool:
    return credential.startswith(GUEST)


def _parse(credential: str) -> tuple[WorkspaceId, int, str]:
    _, workspace_id, port, session = credential.split(" ")
    return WorkspaceId(workspace_id), int(port), session
