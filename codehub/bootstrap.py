"""Wires adapters to ports."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
from sqlalchemy.exc import DBAPIError
from temporalio.client import Client
from temporalio.runtime import Runtime

from codehub.adapters.oidc.provider import TIMEOUT, OidcOptions, OidcProvider
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

DEFAULT_SCOPES = "openid profile email"
# The providers of each backend.
PROVIDERS = {"local-docker": "docker", "k8s": "kubernetes"}
# The API and the proxy wait at most this long for the check of the home store.
CHECK_SECONDS = 5.0


@dataclass(frozen=True)
class Ports:
    """The ports of the worker and the API."""

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
    """The ports of the proxy. It does not need archives, so it gets no keys to them."""

    database: Database
    instances: Instances
    buffer: ActivityBuffer
    board: ProgressBoard
    convergence: Convergence


@asynccontextmanager
async def open_ports(settings: Settings, client: Client) -> AsyncIterator[Ports]:
    """Open all adapters, and close them in reverse order."""
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
    """Record the home store, and create the bucket.

    Do not create a bucket once there are workspaces: their archives would be missing in it.
    """
    async with open_database(settings) as database:
        await ensure_homes(settings, database)
        async with database.transaction() as session:
            if await has_workspaces(session):
                return
    async with S3Archives.open(archive_store_of(settings)) as archives:
        await archives.ensure_bucket()


async def ensure_homes(settings: Settings, database: Database) -> None:
    """Record the home store at the first start. Raise SettingsError if another one is recorded."""
    async with open_providers(settings) as providers:
        try:
            await ensure_home_store(database, providers.homes)
        except WrongHomeStore as error:
            raise SettingsError([str(error)]) from error


async def require_home_store(settings: Settings) -> None:
    """Raise SettingsError if the homes are in another home store.

    The API and the proxy can start while the database or a provider is down. Nothing is checked here then;
    the guard of the providers protects the homes.
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
        # A missing schema is reported by the code that uses it.
        if not (is_outage(error) or isinstance(error, DBAPIError)):
            raise


async def connect_temporal(
    settings: Settings, runtime: Runtime | None = None, *, lazy: bool = False
) -> Client:
    """Connect now, or on the first call if `lazy`, so that a process can start during an outage."""
    temporal = settings.temporal
    api_key = temporal.api_key.get_secret_value() if temporal.api_key else None
    address = temporal.address or _unset("CODEHUB_TEMPORAL_ADDRESS")
    return await connect(
        address, temporal.namespace, api_key, tls=load_tls_config(temporal), lazy=lazy, runtime=runtime
    )


@asynccontextmanager
async def open_identity_provider(settings: Settings, callback: str) -> AsyncIterator[OidcProvider | None]:
    """Open the identity provider, if there is one; `callback` is the path of its redirect address."""
    oidc = settings.oidc
    if oidc.issuer is None or oidc.client_id is None:
        yield None
        return
    options = OidcOptions(
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        client_secret=oidc.client_secret.get_secret_value() if oidc.client_secret else None,
        redirect_uri=settings.public_base_url + callback,
        scopes=oidc.scopes or DEFAULT_SCOPES,
        username_claim=oidc.username_claim,
        groups_claim=oidc.groups_claim,
    )
    async with httpx.AsyncClient(timeout=TIMEOUT) as client:
        yield OidcProvider(options, client)


def subscription_of(settings: Settings) -> EventSubscription:
    """Return a subscription, which connects when it runs and reconnects by itself."""
    return RedisEventSubscription(redis_url_of(settings))


def histories_of(client: Client) -> Histories:
    return TemporalHistories(client)


def sweeps_of(client: Client) -> Sweeps:
    return TemporalSweeps(client)


def version_checks(
    settings: Settings, ports: Ports, client: Client
) -> Mapping[str, Callable[[], Awaitable[str]]]:
    """Return a function for each service that returns its version, or raises if it does not respond."""

    async def check_store() -> str:
        # S3 has no version, so only check that it responds.
        await ports.archives.observe(None)
        return "S3"

    name = PROVIDERS.get(settings.workspaces.instance_backend, "")
    provider = {name: ports.provider_version} if ports.provider_version else {}
    return {
        **provider,
        "postgresql": lambda: server_version(ports.database),
        "redis": lambda: redis_version(redis_url_of(settings)),
        "temporal": lambda: temporal_version(client),
        "s3": check_store,
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
    raise SettingsError([f"{variable} is not set, and this process needs it; `codehub up` sets it by itself"])
