"""`python -m proxy`: the front door, until it is told to stop."""

import argparse
import asyncio
import logging
import signal
import sys

import uvloop

from codehub.bootstrap import refuse_other_homes
from codehub.gc_tuning import tune_gc
from codehub.logs import set_up_logging
from codehub.process_exit import exit_process
from codehub.readiness import signal_ready
from codehub.settings import Settings, SettingsError, load_settings
from proxy.metrics import ProxyCollector, serve_metrics
from proxy.wiring import Proxy, open_proxy
from proxy.worker_processes import run_workers

log = logging.getLogger("proxy")

CANNOT_LISTEN = 1
WRONG_SETTINGS = 2
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    options = _options()
    try:
        settings = load_settings()
        set_up_logging(settings.general.log_level, settings.general.log_format)
        workers = options.workers or settings.proxy.workers
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            if options.number is None and workers > 1:
                return runner.run(run_workers(workers, settings.proxy.ready_file))
            return runner.run(serve(settings, options.number))
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 (for the person who started it, whatever the log level)
        return WRONG_SETTINGS


async def serve(settings: Settings, number: int | None) -> int:
    """One process; with a number it is one of several that share the port."""
    stopping = _stop_signals()
    if number is not None:
        await _stop_with_parent(stopping)
    await refuse_other_homes(settings)
    async with open_proxy(settings) as proxy:
        tune_gc()
        try:
            await _listen(proxy, settings, number)
        except OSError as error:
            log.error(  # noqa: TRY400 (the reason says it all)
                "cannot listen on %s:%s or on the port for metrics (%s); choose others with "
                "CODEHUB_PROXY_PORT and CODEHUB_PROXY_METRICS_PORT",
                settings.proxy.host,
                settings.proxy.port,
                error.strerror,
            )
            return CANNOT_LISTEN
        log.info("ready on http://%s:%s", settings.proxy.host, settings.proxy.port)
        signal_ready(settings.proxy.ready_file)
        await _until_stopped(proxy, stopping, settings.proxy.drain_seconds)
    log.info("stopped")
    return 0


async def _listen(proxy: Proxy, settings: Settings, number: int | None) -> None:
    wanted = settings.proxy
    if wanted.metrics_port is not None:
        serve_metrics(
            wanted.metrics_port + (number or 0), ProxyCollector(proxy.server, proxy.door, proxy.book)
        )
    await proxy.server.listen(wanted.host, wanted.port, reuse_port=number is not None)


async def _until_stopped(proxy: Proxy, stopping: "asyncio.Queue[int]", drain_seconds: float) -> None:
    """Once told, what is under way may end; told twice, it ends now."""
    await stopping.get()
    log.info("stopping: what is under way gets %s s", drain_seconds)
    draining = asyncio.create_task(proxy.server.drain(drain_seconds))
    told_again = asyncio.create_task(stopping.get())
    await asyncio.wait([draining, told_again], return_when=asyncio.FIRST_COMPLETED)
    told_again.cancel()
    if not draining.done():
        draining.cancel()
        await proxy.server.drain(0)


def _stop_signals() -> "asyncio.Queue[int]":
    told: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, told.put_nowait, int(number))
    return told


async def _stop_with_parent(told: "asyncio.Queue[int]") -> None:
    class Parent(asyncio.Protocol):
        def connection_lost(self, _error: Exception | None) -> None:
            told.put_nowait(0)

    await asyncio.get_running_loop().connect_read_pipe(Parent, sys.stdin)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proxy", description="The front door of CodeHub.")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that share the port (CODEHUB_PROXY_WORKERS)"
    )
    # How the processes are told apart that `--workers` starts.
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    exit_process(main())
