"""`python -m worker`: runs workflows, activities and the event relay."""

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta

from temporalio.client import Client
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import Interceptor

from codehub.adapters.temporal.connection import TemporalUnavailable
from codehub.adapters.temporal.schedules import SchedulePeriods, ensure_schedules
from codehub.adapters.temporal.search_attributes import SearchAttributesUnusable, ensure_search_attributes
from codehub.bootstrap import (
    connect_temporal,
    database_url_of,
    open_bus,
    open_database,
    open_ports,
    prepare_stores,
)
from codehub.db.session import DatabaseUnavailable
from codehub.domain.failures import Failure
from codehub.gc_tuning import tune_gc
from codehub.logs import set_up_logging
from codehub.policy import policy_of
from codehub.process_exit import exit_process
from codehub.providers import unsafe_workspaces
from codehub.readiness import signal_ready
from codehub.services.errors import SingleAccountOnly
from codehub.services.home_store import (
    HomesNotImported,
    WrongBackend,
    require_backend,
    require_homes_imported,
)
from codehub.services.users import require_single_account
from codehub.settings import Settings, SettingsError, load_settings
from worker.change_watcher import ChangeWatcher
from worker.relay import EventRelay
from worker.workers import create_workers

log = logging.getLogger("worker")

UNAVAILABLE = 1
WRONG_SETTINGS = 2


def main(interceptors: Sequence[Interceptor] = ()) -> int:
    try:
        settings = load_settings()
        set_up_logging(settings.general.log_level, settings.general.log_format)
        asyncio.run(run(settings, interceptors))
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 (for the person who started it, at any log level)
        return WRONG_SETTINGS
    except (TemporalUnavailable, DatabaseUnavailable, Failure) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return UNAVAILABLE
    return 0


async def run(settings: Settings, interceptors: Sequence[Interceptor]) -> None:
    client = await connect_temporal(settings, runtime=_runtime(settings))
    await prepare(client, settings)
    async with open_ports(settings, client) as ports, open_bus(settings) as bus:
        workers = create_workers(
            client,
            settings.temporal.task_queue,
            ports,
            policy_of(settings),
            interceptors=interceptors,
        )
        relay = EventRelay(database_url_of(settings), bus)
        async with asyncio.TaskGroup() as tasks:
            stopping = _stop_signal()
            running = tasks.create_task(workers.run())
            helpers = [tasks.create_task(relay.run())]
            if ports.changes is not None:
                watcher = ChangeWatcher(ports.database, ports.changes, ports.convergence)
                helpers.append(tasks.create_task(watcher.run()))
            tune_gc()
            log.info("ready")
            signal_ready(settings.worker.ready_file)
            stop_requested = tasks.create_task(stopping.wait())
            await asyncio.wait([running, stop_requested], return_when=asyncio.FIRST_COMPLETED)
            log.info("stopping: running steps get %s s", settings.worker.shutdown_grace_seconds)
            await workers.shutdown()
            stopping.set()
            for helper in helpers:
                helper.cancel()
    log.info("stopped")


async def prepare(client: Client, settings: Settings) -> None:
    """Prepare the servers before taking work. Several workers can do so at once."""
    await require_own_backend(settings)
    await require_one_account(settings)
    await prepare_stores(settings)
    await prepare_search_attributes(client)
    sweeps = settings.sweeps
    periods = SchedulePeriods(
        ttl=timedelta(seconds=sweeps.ttl_seconds),
        gc=timedelta(seconds=sweeps.gc_seconds),
        observe=timedelta(seconds=sweeps.observe_seconds),
        disk=timedelta(seconds=sweeps.disk_seconds),
        retention=timedelta(seconds=sweeps.retention_seconds),
    )
    await ensure_schedules(client, settings.temporal.task_queue, periods)


async def prepare_search_attributes(client: Client) -> None:
    try:
        await ensure_search_attributes(client)
    except SearchAttributesUnusable as error:
        raise SettingsError([str(error)]) from error


async def require_own_backend(settings: Settings) -> None:
    """Raise SettingsError if the homes are in another backend, where they would count as lost."""
    try:
        async with open_database(settings) as database, database.transaction() as session:
            await require_homes_imported(session)
            await require_backend(session, settings.workspaces.instance_backend)
    except (HomesNotImported, WrongBackend) as error:
        raise SettingsError([str(error)]) from error


async def require_one_account(settings: Settings) -> None:
    """Raise SettingsError if workspaces without a sandbox would run for several people."""
    if not unsafe_workspaces(settings):
        return
    try:
        async with open_database(settings) as database:
            await require_single_account(database)
    except SingleAccountOnly as error:
        raise SettingsError([str(error)]) from error


def _runtime(settings: Settings) -> Runtime | None:
    host, port = settings.worker.metrics_host, settings.worker.metrics_port
    if port is None:
        return None
    metrics = PrometheusConfig(bind_address=f"{host}:{port}")
    return Runtime(telemetry=TelemetryConfig(metrics=metrics))


def _stop_signal() -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


if __name__ == "__main__":
    exit_process(main())
