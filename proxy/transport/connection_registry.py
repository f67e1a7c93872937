"""The open client connections, by address, credential and user."""

import asyncio
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proxy.transport.client_connection import ClientConnection


class ConnectionRegistry:
    """Knows every client connection and limits how many there are."""

    def __init__(self, max_connections: int, max_per_address: int, max_per_user: int) -> None:
        self._max_connections = max_connections
        self._max_per_address = max_per_address
        self._max_per_user = max_per_user
        self._connections: set[ClientConnection] = set()
        self._by_address: dict[str, set[ClientConnection]] = {}
        self._by_credential: dict[str, set[ClientConnection]] = {}
        self._by_user: dict[str, set[ClientConnection]] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def credentials(self) -> set[str]:
        """Credentials with open connections."""
        return set(self._by_credential)

    def count(self, user: str) -> int:
        return len(self._by_user.get(user, ()))

    def add(self, connection: "ClientConnection") -> bool:
        """Register a connection; return False if it must be refused: too many, or the server is draining."""
        self._connections.add(connection)
        self._empty.clear()
        return not self.draining and len(self._connections) <= self._max_connections

    def place(self, connection: "ClientConnection", address: str) -> bool:
        """Count the connection for another address; return False if that one has too many."""
        self._displace(connection)
        group = self._by_address.setdefault(address, set())
        if len(group) >= self._max_per_address:
            return False
        group.add(connection)
        connection.address = address
        return True

    def assign(self, connection: "ClientConnection", credential: str | None, user: str | None) -> bool:
        """Count the connection for these instead of its last ones; return False if the user has too many."""
        self._unassign(connection)
        if user is not None:
            if self.count(user) >= self._max_per_user:
                return False
            self._by_user.setdefault(user, set()).add(connection)
            connection.user = user
        if credential is not None:
            self._by_credential.setdefault(credential, set()).add(connection)
            connection.credential = credential
        return True

    def remove(self, connection: "ClientConnection") -> None:
        self._unassign(connection)
        self._displace(connection)
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    async def wait_until_empty(self) -> None:
        await self._empty.wait()

    def end_credential(self, credential: str) -> int:
        """End every connection that last used the credential; return how many."""
        ended = list(self._by_credential.get(credential, ()))
        for connection in ended:
            connection.abort()
        return len(ended)

    def expire(self, now: float) -> None:
        """Expire overdue connections; one pass is cheaper than timers that nearly every request moves."""
        for connection in [each for each in self._connections if each.deadline <= now]:
            # Expiring may set a new deadline.
            connection.deadline = math.inf
            connection.expire(now)

    def drain(self) -> None:
        self.draining = True
        for connection in list(self._connections):
            connection.drain()

    def abort(self) -> None:
        for connection in list(self._connections):
            connection.abort()

    def _displace(self, connection: "ClientConnection") -> None:
        if connection.address is not None:
            _discard(self._by_address, connection.address, connection)
            connection.address = None

    def _unassign(self, connection: "ClientConnection") -> None:
        if connection.credential is not None:
            _discard(self._by_credential, connection.credential, connection)
            connection.credential = None
        if connection.user is not None:
            _discard(self._by_user, connection.user, connection)
            connection.user = None


def _discard(groups: "dict[str, set[ClientConnection]]", name: str, connection: "ClientConnection") -> None:
    """Remove the connection from its group; drop empty groups, or they would pile up."""
    group = groups[name]
    group.discard(connection)
    if not group:
        del groups[name]
