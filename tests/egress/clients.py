"""Clients of the gateway over raw sockets: HTTP CONNECT, plain HTTP and SOCKS 5."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from uuid import UUID

from codehub.db.egress import LogEntry, list_log, set_choice, set_limit
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressPolicy
from codehub.egress_tokens import make_preamble
from testkit.rows import NOW, add_user, add_workspace

KEY = "the key of these tests"
ENOUGH_SECONDS = 60
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Client:
    """One workspace's connection to the gateway."""

    socket: Path
    workspace_id: WorkspaceId
    key: str = KEY

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Stream]:
        """Connect as the relay of the workspace does."""
        async with asyncio.timeout(ENOUGH_SECONDS):
            reader, writer = await asyncio.open_unix_connection(str(self.socket))
            writer.write(make_preamble(self.key, self.workspace_id).encode())
            try:
                yield reader, writer
            finally:
                writer.close()

    async def send(self, data: bytes) -> bytes:
        """Send these bytes and return everything that comes back."""
        async with self.connect() as (reader, writer):
            writer.write(data)
            try:
                return await reader.read()
            except ConnectionError:
                return b""

    async def get(self, url: str) -> bytes:
        """Fetch with a plain HTTP request through the proxy."""
        return await self.send(f"GET {url} HTTP/1.1\r\nProxy-Connection: keep-alive\r\n\r\n".encode())

    async def connect_and_get(self, authority: str) -> bytes:
        """Fetch through CONNECT; return the proxy's response if it refuses."""
        async with self.connect() as stream:
            response = await open_tunnel(stream, authority)
            return await fetch(stream) if b" 200 " in response else response

    async def socks_get(self, host: str | bytes, port: int) -> bytes:
        """Fetch through SOCKS; return the reply if it refuses."""
        async with self.connect() as stream:
            reply = await open_socks(stream, host, port)
            return await fetch(stream) if reply[1] == 0 else reply


async def open_tunnel(stream: Stream, authority: str) -> bytes:
    reader, writer = stream
    writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    return head if b" 200 " in head else head + await reader.read()


async def open_socks(stream: Stream, host: str | bytes, port: int) -> bytes:
    reader, writer = stream
    writer.write(b"\x05\x01\x00")
    if await reader.readexactly(2) != b"\x05\x00":
        return b"\x05\xff"
    writer.write(b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2))
    return await reader.readexactly(10)


def _socks_address(host: str | bytes) -> bytes:
    if isinstance(host, bytes):
        return b"\x03" + bytes((len(host),)) + host
    try:
        packed = ip_address(host).packed
    except ValueError:
        return _socks_address(host.encode())
    return (b"\x01" if len(packed) == 4 else b"\x04") + packed


async def fetch(stream: Stream) -> bytes:
    reader, writer = stream
    writer.write(b"GET / HTTP/1.1\r\nHost: inside\r\n\r\n")
    return await reader.read()


async def new_workspace(database: Database) -> WorkspaceId:
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session))


async def choose(database: Database, workspace_id: WorkspaceId, policy: EgressPolicy | None) -> None:
    async with database.transaction() as session:
        await set_choice(session, workspace_id, policy, NOW)


async def limit(database: Database, workspace_id: WorkspaceId, policy: EgressPolicy | None) -> None:
    async with database.transaction() as session:
        await set_limit(session, workspace_id, policy, NOW)


async def read_log(database: Database, workspace_id: WorkspaceId) -> Sequence[LogEntry]:
    async with database.transaction() as session:
        return await list_log(session, WorkspaceId(str(UUID(workspace_id))), NOW.replace(year=2020), 1000)
