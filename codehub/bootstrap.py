"""The only wiring: which adapters stand behind the ports."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy.exc import DBAPIError
from temporalio.client import Client
from temporalio.runtime import Runtime

from codehub.adapters.redis.activity import RedisActivityBuffer
from codehub.adapters.redis.connection import create_client, redis_version
from codehub.adapters.redis.events import RedisEventBus
from codehub.adapters.redis.progress_board import RedisProgressBoard
from codehub.adapters.redis.subscription import RedisEventSubscription
from codehub.adapters.s3.archives import S3Archives
from codehub.adapters.temporal.connection import connect, temporal_version
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.adapters.temporal.histories import TemporalHistories
from codehub.adapters.temporal.schedules import TemporalSweeps
from codehub.clock import Clock, utc_now
from codehub.db.session import Database, create_engine, server_version
from codehub.db.workspaces import has_workspaces
from codehub.domain.garbage import GracePeriods
from codehub.domain.limits import IdleTimes, RunningLimits
from codehub.domain.retention import RetentionPeriods
from codehub.ports import (
    ActivityBuffer,
    Archives,
    ArchiveStore,
    Changes,
    Convergence,
    EventSubscription,
    Histories,
    Instances,
    ProgressBoard,
    StorageJobs,
    Sweeps,
    Volumes,
)
from codehub.providers import open_providers
from codehub.services.home_store import WrongHomeStore, check_home_store, ensure_home_store
from codehub.services.outages import is_outage
from codehub.settings import Settings, SettingsError
from codehub.temporal_tls import load_tls_config

# A process that only serves does not wait longer than that to learn whose homes it sees.
CHECK_SECONDS = 5.0

FEWEST_STARTS = 4


@dataclass(frozen=True)
class Ports:
    """Everything that a process may talk to."""

    database: Database
    instances: Instances
    volumes: Volumes
    jobs: StorageJobs
    archives: Archives
    buffer: ActivityBuffer
    board: ProgressBoard
    convergence: Convergence
    changes: Changes | None = None
    provider_version: Callable[[], Awaitable[str]] | None = None
    clock: Clock = utc_now


@dataclass(frozen=True)
class FrontPorts:
    """What the proxy talks to; it has no business with archives, so it is given no keys to them."""

    database: Database
    instances: Instances
    buffer: ActivityBuffer
    board: ProgressBoard
    convergence: Convergence


@dataclass(frozen=True)
class StepLimits:
    """How many steps of each kind one worker does at once."""

    archives: int = 2
    restores: int = 2
    starts: int = 4
    others: int = 100


@dataclass(frozen=True)
class Policy:
    """The numbers of the settings, as the domain spells them."""

    idle_times: IdleTimes = field(
        default_factory=lambda: IdleTimes(timedelta(seconds=600), timedelta(seconds=1800))
    )
    limits: RunningLimits = field(default_factory=RunningLimits)
    graces: GracePeriods = field(default_factory=GracePeriods)
    retention: RetentionPeriods = field(default_factory=RetentionPeriods)
    shutdown_grace: timedelta = timedelta(seconds=10)
    stall: timedelta = timedelta(seconds=600)
    steps: StepLimits = StepLimits()


def policy_of(settings: Settings) -> Policy:
    return Policy(
        idle_times=IdleTimes(
            standby=timedelta(seconds=settings.ttl.standby_seconds),
            archive=timedelta(seconds=settings.ttl.archive_seconds),
        ),
        limits=RunningLimits(settings.limits.max_running_per_user, settings.limits.max_running_global),
        graces=GracePeriods(
            orphan=timedelta(seconds=settings.gc.grace_seconds),
            undelete=timedelta(seconds=settings.gc.undelete_seconds),
        ),
        retention=RetentionPeriods(
            workspaces=timedelta(days=settings.retention.workspaces_days),
            archives=timedelta(days=settings.retention.archives_days),
            events=timedelta(days=settings.retention.events_days),
            sessions=timedelta(days=settings.retention.sessions_days),
            tokens=timedelta(days=settings.retention.tokens_days),
            usage=timedelta(days=settings.retention.usage_days),
        ),
        shutdown_grace=timedelta(seconds=settings.worker.shutdown_grace_seconds),
        stall=stall_of(settings),
        steps=step_limits_of(settings, len(os.sched_getaffinity(0))),
    )


def stall_of(settings: Settings) -> timedelta:
    """A stop shows no progress while it leaves the IDE the time that it may take to end."""
    return timedelta(seconds=settings.worker.stall_seconds + settings.docker.stop_seconds)


def step_limits_of(settings: Settings, cores: int) -> StepLimits:
    """An upload or a download keeps a core busy; an IDE that starts needs one for a part of the time."""
    worker = settings.worker
    return StepLimits(
        archives=worker.concurrent_archives or cores,
        restores=worker.concurrent_restores or cores,
        starts=worker.concurrent_starts or max(FEWEST_STARTS, 2 * cores),
        others=worker.concurrent_activities,
    )


@asynccontextmanager
async def open_ports(settings: Settings, client: Client) -> AsyncIterator[Ports]:
    """Open everything, and close it in reverse order."""
    store = archive_store_of(settings)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        opened = await stack.enter_async_context(open_providers(settings))
        providers = opened.guarded(database)
        archives = await stack.enter_async_context(S3Archives.open(store))
        redis = create_client(redis_url_of(settings))
        stack.push_async_callback(redis.aclose)
        yield Ports(
            database=database,
            instances=providers.instances,
            volumes=providers.volumes,
            jobs=providers.jobs(store),
            archives=archives,
            buffer=RedisActivityBuffer(redis),
            board=RedisProgressBoard(redis),
            convergence=TemporalConvergence(client, settings.temporal.task_queue),
            changes=providers.changes,
            provider_version=providers.version,
        )


@asynccontextmanager
async def open_front_ports(settings: Settings, client: Client) -> AsyncIterator[FrontPorts]:
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        opened = await stack.enter_async_context(open_providers(settings))
        providers = opened.guarded(database)
        redis = create_client(redis_url_of(settings))
        stack.push_async_callback(redis.aclose)
        yield FrontPorts(
            database=database,
            instances=providers.instances,
            buffer=RedisActivityBuffer(redis),
            board=RedisProgressBoard(redis),
            convergence=TemporalConvergence(client, settings.temporal.task_queue),
        )


async def prepare_stores(settings: Settings) -> None:
    """Claim the store of homes; set up the bucket, unless there are workspaces whose archives it misses."""
    async with open_database(settings) as database:
        await claim_homes(settings, database)
        async with database.transaction() as session:
            if await has_workspaces(session):
                return
    async with S3Archives.open(archive_store_of(settings)) as archives:
        await archives.ensure_bucket()


async def claim_homes(settings: Settings, database: Database) -> None:
    """Record the store of homes at the first start; raise SettingsError if the homes are in another one."""
    async with open_providers(settings) as providers:
        try:
            await ensure_home_store(database, providers.homes)
        except WrongHomeStore as error:
            raise SettingsError([str(error)]) from error


async def refuse_other_homes(settings: Settings) -> None:
    """Raise SettingsError if the homes are in another store.

    For processes that serve without a database or a provider too: while one is away, they are not stopped
    here, and the providers' guard protects the homes.
    """
    try:
        async with (
            asyncio.timeout(CHECK_SECONDS),
            open_database(settings) as database,
            open_providers(settings) as providers,
        ):
            await check_home_store(database, providers.homes)
    except WrongHomeStore as error:
        raise SettingsError([str(error)]) from error
    except Exception as error:
        # A schema that is not there yet is for whoever uses it to tell.
        if not (is_outage(error) or isinstance(error, DBAPIError)):
            raise


async def connect_temporal(
    settings: Settings, runtime: Runtime | None = None, *, lazy: bool = False
) -> Client:
    """Now, or with `lazy` on the first call: then an outage keeps nobody from starting."""
    temporal = settings.temporal
    api_key = temporal.api_key.get_secret_value() if temporal.api_key else None
    address = temporal.address or _unset("CODEHUB_TEMPORAL_ADDRESS")
    return await connect(
        address, temporal.namespace, api_key, tls=load_tls_config(temporal), lazy=lazy, runtime=runtime
    )


def subscription_of(settings: Settings) -> EventSubscription:
    """It opens its connection once it runs, and keeps it open by itself."""
    return RedisEventSubscription(redis_url_of(settings))


def histories_of(client: Client) -> Histories:
    return TemporalHistories(client)


def sweeps_of(client: Client) -> Sweeps:
    return TemporalSweeps(client)


def version_checks(
    settings: Settings, ports: Ports, client: Client
) -> Mapping[str, Callable[[], Awaitable[str]]]:
    """How to ask each service for its version, which also tells whether it answers."""

    async def ask_store() -> str:
        # S3 has no version; that it answers is all there is to know.
        await ports.archives.observe(None)
        return "S3"

    provider = {"docker": ports.provider_version} if ports.provider_version else {}
    return {
        **provider,
        "postgresql": lambda: server_version(ports.database),
        "redis": lambda: redis_version(redis_url_of(settings)),
        "temporal": lambda: temporal_version(client),
        "s3": ask_store,
    }


@asynccontextmanager
async def open_bus(settings: Settings) -> AsyncIterator[RedisEventBus]:
    redis = create_client(redis_url_of(settings))
    try:
        yield RedisEventBus(redis)
    finally:
        await redis.aclose()


def open_database(settings: Settings) -> Database:
    database = settings.database
    return Database(
        create_engine(
            database_url_of(settings),
            pool_size=database.pool_size,
            connect_timeout_seconds=database.connect_timeout_seconds,
            statement_timeout_seconds=database.statement_timeout_seconds,
        )
    )


def database_url_of(settings: Settings) -> str:
    url = settings.database.url
    return url.get_secret_value() if url else _unset("CODEHUB_DATABASE_URL")


def redis_url_of(settings: Settings) -> str:
    url = settings.redis.url
    return url.get_secret_value() if url else _unset("CODEHUB_REDIS_URL")


def archive_store_of(settings: Settings) -> ArchiveStore:
    s3 = settings.s3
    if s3.endpoint_url is None or s3.access_key is None or s3.secret_key is None:
        _unset("CODEHUB_S3_ENDPOINT_URL")
    return ArchiveStore(
        endpoint_url=s3.endpoint_url,
        region=s3.region,
        bucket=s3.bucket,
        access_key=s3.access_key or "",
        secret_key=s3.secret_key.get_secret_value() if s3.secret_key else "",
    )


def _unset(variable: str) -> str:
    raise SettingsError([f"{variable} is not set: this process needs it; `codehub up` sets it by itself"])
