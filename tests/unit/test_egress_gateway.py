"""Connections that say nothing: one workspace cannot keep the gateway from others."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressRules, OwnServers
from codehub.egress_tokens import make_preamble
from egress.connection_log import ConnectionLog
from egress.dialer import Dialer
from egress.gateway import Gateway, Limits
from egress.policies import NOTHING, PolicyCache

KEY = "key"
HOSTILE, HONEST = WorkspaceId(str(uuid4())), WorkspaceId(str(uuid4()))
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _nothing_is_permitted(ids: Collection[WorkspaceId]) -> dict[WorkspaceId, EgressRules]:
    return dict.fromkeys(ids, NOTHING)


async def _resolve(_workspace_id: WorkspaceId, _host: str) -> list[object]:
    raise AssertionError("the policy refuses before a name is resolved")


@asynccontextmanager
async def running_gateway(path: Path, limits: Limits) -> AsyncIterator[Path]:
    dialer = Dialer(_resolve, OwnServers, 1, 1)  # type: ignore[arg-type]
    log = ConnectionLog(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    gateway = Gateway(KEY, PolicyCache(_nothing_is_permitted), dialer, log, limits)
    server = await asyncio.get_running_loop().create_unix_server(gateway.protocol, path / "gateway.sock")
    try:
        yield path / "gateway.sock"
    finally:
        server.close()
        gateway.abort_all()


async def _open(path: Path, stack: AsyncExitStack, preamble: str = "") -> Streams:
    reader, writer = await asyncio.open_unix_connection(path)
    stack.callback(writer.close)
    writer.write(preamble.encode())
    return reader, writer


async def _is_served(path: Path, stack: AsyncExitStack) -> bool:
    reader, writer = await _open(path, stack, make_preamble(KEY, HONEST))
    writer.write(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(10):
        return b" 403 " in await reader.readline()


@pytest.mark.parametrize("preamble", ["", make_preamble(KEY, HOSTILE)], ids=["silent", "without a request"])
async def test_held_connections_of_one_workspace_do_not_keep_others_out(
    tmp_path: Path, preamble: str
) -> None:
    limits = Limits(connections=8, connections_per_workspace=3)
    async with running_gateway(tmp_path, limits) as path, AsyncExitStack() as stack:
        for _ in range(20):
            await _open(path, stack, preamble)
        assert await _is_served(path, stack)


async def test_a_silent_connection_gives_way_only_if_there_is_no_room(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, Limits(connections=3)) as path, AsyncExitStack() as stack:
        held = [await _open(path, stack) for _ in range(3)]
        assert await _is_served(path, stack)
        async with asyncio.timeout(10):
            assert await held[0][0].read() == b""
        assert not held[1][0].at_eof()
