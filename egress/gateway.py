"""Tracks all connections of the gateway: limits them, and ends those that are no longer allowed."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressRules, Refusal, judge_name
from codehub.egress_tokens import read_preamble
from egress.client_connection import ClientConnection
from egress.connection_log import ConnectionLog
from egress.dialer import Dialer, Failed, Refused
from egress.policies import PoliciesUnavailable, PolicyCache
from egress.target import Failure, Target


@dataclass(frozen=True)
class Limits:
    """Limits per workspace and for the gateway as a whole."""

    connections: int = 4096
    connections_per_workspace: int = 256
    head_seconds: float = 10
    idle_seconds: float = 900


@dataclass
class Gateway:
    """Accepts connections from workspaces, and dials the targets that their policies permit."""

    key: str
    policies: PolicyCache
    dialer: Dialer
    log: ConnectionLog
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        self._connections: set[ClientConnection] = set()
        # Those that have not said yet from which workspace they come, the oldest first.
        self._unidentified: dict[ClientConnection, None] = {}
        self._by_workspace: defaultdict[WorkspaceId, set[ClientConnection]] = defaultdict(set)

    @property
    def protocol(self) -> Callable[[], ClientConnection]:
        return lambda: ClientConnection(self)

    def add(self, connection: ClientConnection) -> None:
        self._connections.add(connection)
        self._unidentified[connection] = None
        if len(self._connections) > self.limits.connections:
            # A workspace that opens connections and says nothing must not keep others out.
            silent = next(iter(self._unidentified))
            del self._unidentified[silent]
            silent.abort()

    def remove(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)
        self._unidentified.pop(connection, None)
        if connection.workspace_id is not None:
            self._by_workspace[connection.workspace_id].discard(connection)
            if not self._by_workspace[connection.workspace_id]:
                del self._by_workspace[connection.workspace_id]

    def identify(self, connection: ClientConnection, line: bytes) -> WorkspaceId | None:
        """Return the workspace that the preamble authenticates, and count the connection for it.

        Return None if the workspace has far too many connections; the first ones above the limit get a
        response.
        """
        self._unidentified.pop(connection, None)
        workspace_id = read_preamble(self.key, line.decode("latin-1"))
        if workspace_id is None or self._count(workspace_id) >= 2 * self.limits.connections_per_workspace:
            return None
        self._by_workspace[workspace_id].add(connection)
        return workspace_id

    async def connect(self, workspace_id: WorkspaceId, target: Target) -> asyncio.Transport:
        """Connect to the target and log the result. Raise Refused or Failed."""
        if self._count(workspace_id) > self.limits.connections_per_workspace:
            raise Failed(Failure.TOO_MANY)
        try:
            transport = await self.dialer.dial(workspace_id, target, await self._rules(workspace_id))
        except Refused as error:
            self.log.record(workspace_id, target, error.refusal)
            raise
        self.log.record(workspace_id, target, None)
        return transport

    async def refresh(self) -> None:
        """Reload the policies, and abort connections that they no longer permit."""
        await self.policies.refresh()
        own = self.dialer.own()
        for workspace_id, connections in list(self._by_workspace.items()):
            rules = self.policies.known(workspace_id)
            for connection in list(connections):
                target = connection.established_target
                if target is not None and judge_name(rules, own, target.host, target.port):
                    self.log.record(workspace_id, target, Refusal.POLICY)
                    connection.abort()

    async def expire(self) -> None:
        """Abort tunnels that have been idle for too long."""
        now = time.monotonic()
        for connection in list(self._connections):
            connection.expire(now)

    def abort_all(self) -> None:
        for connection in list(self._connections):
            connection.abort()

    def _count(self, workspace_id: WorkspaceId) -> int:
        return len(self._by_workspace.get(workspace_id, ()))

    async def _rules(self, workspace_id: WorkspaceId) -> EgressRules:
        try:
            return await self.policies.load(workspace_id)
        except PoliciesUnavailable as error:
            raise Failed(Failure.NO_POLICY) from error
