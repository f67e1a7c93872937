"""uvicorn for the API: readiness, graceful shutdown, a limit on header size, headers on its own refusals."""

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.app import create_app
from api.context import Context
from codehub.readiness import signal_ready
from codehub.security_headers import security_headers
from codehub.settings import Settings

log = logging.getLogger("api")

KEEP_ALIVE_SECONDS = 75
UNACKNOWLEDGED_SECONDS = 60
BACKLOG = 2048
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
MAX_HEADER_BYTES = 65_536


class BoundedHeadersProtocol(HttpToolsProtocol):
    """Refuses requests with too many bytes of headers, which uvicorn's fast parser does not limit."""

    # Used only for uvicorn's own errors; uvicorn's setting would duplicate the middleware's headers.
    security_headers: ClassVar[Mapping[str, str]] = {}
    _header_bytes = 0
    _in_headers = True

    def data_received(self, data: bytes) -> None:
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES and not self._fits(data):
                self.send_400_response("The request headers are too large.")
                return
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.security_headers.items())
        self.transport.write(
            f"HTTP/1.1 400 Bad Request\r\n{headers}Content-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(msg)}\r\nConnection: close\r\n\r\n{msg}".encode("ascii")
        )
        self.transport.close()

    def on_message_begin(self) -> None:
        self._in_headers = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._header_bytes = 0
        super().on_headers_complete()

    def _fits(self, data: bytes) -> bool:
        """Return whether the headers end in time inside this chunk; the rest of it is body."""
        end = data.find(b"\r\n\r\n")
        return end != -1 and self._header_bytes - len(data) + end <= MAX_HEADER_BYTES


class Server(uvicorn.Server):
    """Signals readiness, and ends event streams before it stops: they would not end by themselves."""

    def __init__(self, config: uvicorn.Config, context: Context, ready_file: Path | None) -> None:
        super().__init__(config)
        self._context = context
        self._ready_file = ready_file

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not raise the signal again, as uvicorn does: the process would end before it has cleaned up."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            log.info("ready on http://%s:%s", self.config.host, self.config.port)
            signal_ready(self._ready_file)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._context.hub.close()
        await super().shutdown(sockets)


def create_server(settings: Settings, context: Context) -> Server:
    config = uvicorn.Config(
        create_app(context),
        host=settings.api.host,
        port=settings.api.port,
        # Logging is set up already, and the middleware logs each request.
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=settings.api.trusted_proxies,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.api.shutdown_grace_seconds,
        http=_protocol(https=context.options.is_https),
        # The API has no WebSockets: treat an upgrade as a plain request, so that the middleware adds its
        # headers.
        ws="none",
    )
    return Server(config, context, settings.api.ready_file)


def _protocol(*, https: bool) -> type[BoundedHeadersProtocol]:
    class Protocol(BoundedHeadersProtocol):
        security_headers = security_headers(https=https)

    return Protocol


def listen(host: str, port: int) -> socket.socket:
    """Open a socket whose connections end if the peer stops acknowledging: a stream may have no other end."""
    listening = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
    )
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_SECONDS * 1000)
    listening.setblocking(False)
    return listening
