"""`python -m proxy`: serve workspaces and the API until stopped."""

import argparse
import asyncio
import logging
import signal
import sys

import uvloop

from codehub.bootstrap import require_home_store
from codehub.gc_tuning import tune_gc
from codehub.logs import set_up_logging
from codehub.origins import OriginMode, origins_warning
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
        print(error, file=sys.stderr)  # noqa: T201 (shown at any log level)
        return WRONG_SETTINGS


async def serve(settings: Settings, number: int | None) -> int:
    """Run one process; with a number, it is one of several that share the port."""
    stopping = _stop_signals()
    if number is not None:
        await _stop_with_parent(stopping)
    await require_home_store(settings)
    async with open_proxy(settings) as proxy:
        tune_gc()
        try:
            await _listen(proxy, settings, number)
        except OSError as error:
            log.error(  # noqa: TRY400 (a traceback would add nothing)
                "cannot listen on %s:%s or another port (%s); choose other ports with CODEHUB_PROXY_PORT, "
                "CODEHUB_PROXY_METRICS_PORT and CODEHUB_WORKSPACES_PORTS",
                settings.proxy.host,
                settings.proxy.port,
                error.strerror,
            )
            return CANNOT_LISTEN
        if warning := origins_warning(settings.origins):
            log.warning(warning)
        log.info("ready on http://%s:%s", settings.proxy.host, settings.proxy.port)
        signal_ready(settings.proxy.ready_file)
        await _until_stopped(proxy, stopping, settings.proxy.drain_seconds)
    log.info("stopped")
    return 0


async def _listen(proxy: Proxy, settings: Settings, number: int | None) -> None:
    wanted = settings.proxy
    if wanted.metrics_port is not None:
        serve_metrics(
            wanted.metrics_host,
            wanted.metrics_port + (number or 0),
            ProxyCollector(proxy.server, proxy.front_door, proxy.activity_log),
        )
    own_ports = settings.origins.ports if settings.origins.mode is OriginMode.PORT else ()
    for port in (wanted.port, *own_ports):
        await proxy.server.listen(wanted.host, port, reuse_port=number is not None)


async def _until_stopped(proxy: Proxy, stopping: "asyncio.Queue[int]", drain_seconds: float) -> None:
    """Drain after the first signal; stop at once after the second."""
    await stopping.get()
    log.info("stopping; open requests have %s s to finish", drain_seconds)
    draining = asyncio.create_task(proxy.server.drain(drain_seconds))
    second_signal = asyncio.create_task(stopping.get())
    await asyncio.wait([draining, second_signal], return_when=asyncio.FIRST_COMPLETED)
    second_signal.cancel()
    if not draining.done():
        draining.cancel()
        await proxy.server.drain(0)


def _stop_signals() -> "asyncio.Queue[int]":
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, signals.put_nowait, int(number))
    return signals


async def _stop_with_parent(signals: "asyncio.Queue[int]") -> None:
    class Parent(asyncio.Protocol):
        def connection_lost(self, _error: Exception | None) -> None:
            signals.put_nowait(0)

    await asyncio.get_running_loop().connect_read_pipe(Parent, sys.stdin)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m proxy", description="Serve workspaces and the API on one port."
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that share the port (CODEHUB_PROXY_WORKERS)"
    )
    # Numbers the processes that `--workers` starts.
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    exit_process(main())
