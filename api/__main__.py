"""`python -m api`: serves the REST API until it is told to stop."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
import uvloop

from api.app import create_app
from api.context import Context
from api.uvicorn_protocol import BoundedHeadersProtocol
from api.wiring import open_context
from codehub.bootstrap import refuse_other_homes
from codehub.gc_tuning import tune_gc
from codehub.logs import set_up_logging
from codehub.process_exit import exit_process
from codehub.readiness import signal_ready
from codehub.settings import Settings, SettingsError, load_settings

log = logging.getLogger("api")

CANNOT_LISTEN = 1
WRONG_SETTINGS = 2
KEEP_ALIVE_SECONDS = 75
UNTAKEN_SECONDS = 60
BACKLOG = 2048
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Server(uvicorn.Server):
    """Says when it is ready, and ends the streams first when it stops: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, context: Context, ready_file: Path | None) -> None:
        super().__init__(config)
        self._context = context
        self._ready_file = ready_file

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but without raising the signal again: that would end us before all is closed."""
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


def main() -> int:
    try:
        settings = load_settings()
        set_up_logging(settings.general.log_level, settings.general.log_format)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve(settings))
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 (for the person who started it, whatever the log level)
        return WRONG_SETTINGS


async def serve(settings: Settings) -> int:
    await refuse_other_homes(settings)
    async with open_context(settings) as context:
        tune_gc()
        server = Server(config_of(settings, context), context, settings.api.ready_file)
        try:
            listening = listen(settings.api.host, settings.api.port)
        except OSError as error:
            log.error(  # noqa: TRY400 (the reason says it all)
                "cannot listen on %s:%s (%s); choose another port with CODEHUB_API_PORT",
                settings.api.host,
                settings.api.port,
                error.strerror,
            )
            return CANNOT_LISTEN
        await server.serve(sockets=[listening])
    log.info("stopped")
    return 0 if server.started else 1


def listen(host: str, port: int) -> socket.socket:
    """A socket whose connections end when nobody takes what is sent: a stream may have no other end."""
    listening = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
    )
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNTAKEN_SECONDS * 1000)
    listening.setblocking(False)
    return listening


def config_of(settings: Settings, context: Context) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(context),
        host=settings.api.host,
        port=settings.api.port,
        # Ours are set up already, and every request is logged once, by us.
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=settings.api.trusted_proxies,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.api.shutdown_grace_seconds,
        http=BoundedHeadersProtocol,
    )


if __name__ == "__main__":
    exit_process(main())
