"""`python -m egress`: run the egress gateway until stopped."""

import asyncio
import logging
import signal
import sys

import uvloop

from codehub.gc_tuning import tune_gc
from codehub.logs import set_up_logging
from codehub.process_exit import exit_process
from codehub.readiness import signal_ready
from codehub.settings import Settings, SettingsError, load_settings
from egress.listening import listen_on_address, listen_on_socket
from egress.wiring import open_gateway

log = logging.getLogger("egress")

CANNOT_LISTEN = 1
WRONG_SETTINGS = 2
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    try:
        settings = load_settings()
        set_up_logging(settings.general.log_level, settings.general.log_format)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve(settings))
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 (shown at any log level)
        return WRONG_SETTINGS


async def serve(settings: Settings) -> int:
    stopping = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with open_gateway(settings) as gateway:
        tune_gc()
        try:
            servers = [await listen_on_socket(settings.egress_socket, gateway.protocol)]
            if settings.egress.address:
                servers.append(await listen_on_address(settings.egress.address, gateway.protocol))
        except OSError as error:
            log.error(  # noqa: TRY400 (a traceback would add nothing)
                "cannot listen (%s); choose others with CODEHUB_EGRESS_SOCKET and CODEHUB_EGRESS_ADDRESS",
                error,
            )
            return CANNOT_LISTEN
        log.info("ready on %s", settings.egress_socket)
        signal_ready(settings.egress.ready_file)
        await stopping.wait()
        for server in servers:
            server.close()
    log.info("stopped")
    return 0


if __name__ == "__main__":
    exit_process(main())
