"""`python -m api`: serve the REST API until SIGTERM or SIGINT."""

import asyncio
import logging
import sys

import uvloop

from api.server import create_server, listen
from api.wiring import open_context
from codehub.bootstrap import require_home_store
from codehub.gc_tuning import tune_gc
from codehub.logs import set_up_logging
from codehub.process_exit import exit_process
from codehub.settings import Settings, SettingsError, load_settings

log = logging.getLogger("api")

CANNOT_LISTEN = 1
WRONG_SETTINGS = 2


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
    await require_home_store(settings)
    async with open_context(settings) as context:
        tune_gc()
        server = create_server(settings, context)
        try:
            listening = listen(settings.api.host, settings.api.port)
        except OSError as error:
            log.error(  # noqa: TRY400 (a traceback would add nothing)
                "cannot listen on %s:%s (%s); choose another port with CODEHUB_API_PORT",
                settings.api.host,
                settings.api.port,
                error.strerror,
            )
            return CANNOT_LISTEN
        await server.serve(sockets=[listening])
    log.info("stopped")
    return 0 if server.started else 1


if __name__ == "__main__":
    exit_process(main())
