"""A connection from a workspace: its preamble, one request over HTTP or SOCKS, then a tunnel."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from codehub.domain.conditions import WorkspaceId
from egress import http_requests, socks_requests
from egress.dialer import Failed, Refused
from egress.target import BadRequest, Failure, Request, Target
from egress.tunnel import Tunnel

if TYPE_CHECKING:
    from egress.gateway import Gateway

PREAMBLE_BYTES = 256
HEAD_BYTES = 16_384


class ClientConnection(asyncio.Protocol):
    """Reads until the request is complete, then connects."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self._buffer = bytearray()
        self._read: Callable[[], None] = self._read_preamble
        self._ended = False
        self._connecting: asyncio.Task[None] | None = None
        self._tunnel: Tunnel | None = None
        self.workspace_id: WorkspaceId | None = None
        self._target: Target | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        seconds = self._gateway.limits.head_seconds
        # One deadline for the whole head, so that a slow client cannot extend it.
        self._head_timer = asyncio.get_running_loop().call_later(seconds, self._transport.abort)
        self._gateway.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            self._read()
        except BadRequest as error:
            self._finish(error.response)

    def eof_received(self) -> bool:
        self._ended = True
        # A client may half-close after its request and still wait for the response.
        return self._connecting is not None

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._head_timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        self._gateway.remove(self)

    @property
    def established_target(self) -> Target | None:
        """Return the target of the open tunnel, or None if there is no tunnel yet."""
        return self._target if self._tunnel is not None else None

    def abort(self) -> None:
        if self._tunnel is not None:
            self._tunnel.abort()
        else:
            self._transport.abort()

    def expire(self, now: float) -> None:
        if self._tunnel is not None:
            self._tunnel.expire(now)

    def _read_preamble(self) -> None:
        end = self._buffer.find(b"\n")
        if end < 0 and len(self._buffer) < PREAMBLE_BYTES:
            return
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self.workspace_id = self._gateway.identify(self, line)
        if self.workspace_id is None:
            self._read = self._keep
            self._transport.abort()
        else:
            self._read = self._read_protocol
            self._read()

    def _read_protocol(self) -> None:
        if self._buffer:
            is_socks = self._buffer[0] == socks_requests.VERSION
            self._read = self._read_greeting if is_socks else self._read_head
            self._read()

    def _read_greeting(self) -> None:
        if socks_requests.take_greeting(self._buffer):
            self._transport.write(socks_requests.NO_PASSWORD)
            self._read = self._read_socks
            self._read()

    def _read_socks(self) -> None:
        if request := socks_requests.take_request(self._buffer):
            self._begin(request)

    def _read_head(self) -> None:
        end = self._buffer.find(http_requests.HEAD_END)
        if end < 0 and len(self._buffer) <= HEAD_BYTES:
            return
        if not 0 <= end <= HEAD_BYTES:
            raise BadRequest(http_requests.too_large())
        head = bytes(self._buffer[:end])
        del self._buffer[: end + len(http_requests.HEAD_END)]
        self._begin(http_requests.parse_http(head))

    def _begin(self, request: Request) -> None:
        self._head_timer.cancel()
        self._read = self._keep
        # Until the upstream is connected, further data waits in the kernel.
        self._transport.pause_reading()
        self._target = request.target
        workspace_id = cast("WorkspaceId", self.workspace_id)
        self._connecting = asyncio.create_task(self._connect(workspace_id, request))

    def _keep(self) -> None:
        """Leave the data in the buffer: it arrived before reading paused."""

    async def _connect(self, workspace_id: WorkspaceId, request: Request) -> None:
        try:
            upstream = await self._gateway.connect(workspace_id, request.target)
        except Refused as error:
            self._finish(request.refused(error.refusal))
        except Failed as error:
            self._finish(request.failed(error.failure))
        else:
            if upstream.is_closing():
                self._finish(request.failed(Failure.UNREACHABLE))
            else:
                self._join(request, upstream)

    def _join(self, request: Request, upstream: asyncio.Transport) -> None:
        self._tunnel = Tunnel(
            self._transport,
            upstream,
            self._gateway.limits.idle_seconds,
            lambda: self._gateway.remove(self),
        )
        if established := request.established():
            self._transport.write(established)
        self._tunnel.start(request.initial_data + bytes(self._buffer), client_ended=self._ended)
        self._buffer.clear()
        self._connecting = None

    def _finish(self, response: bytes) -> None:
        """Send the response and close."""
        self._read = self._keep
        self._head_timer.cancel()
        if not self._transport.is_closing():
            self._transport.write(response)
            self._transport.close()
