"""Builds the gateway from the settings, and runs its background tasks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from codehub.clock import utc_now
from codehub.db.egress import add_to_log, load_policies
from codehub.db.session import Database, create_engine
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressRules
from codehub.egress_policy import installation_policy
from codehub.services.network_policies import NetworkRules
from codehub.services.outages import is_outage
from codehub.settings import Settings, SettingsError
from egress.connection_log import ConnectionLog
from egress.dialer import Dialer, SystemResolver
from egress.fair_resolver import FairResolver
from egress.gateway import Gateway, Limits
from egress.own_servers import watch_own_servers
from egress.policies import PolicyCache, ReadRules

logger = logging.getLogger(__name__)

# The gateway runs few and small queries.
POOL_SIZE = 3
LOG_SECONDS = 5.0
OWN_SERVERS_SECONDS = 30.0
IDLE_CHECK_SECONDS = 5.0


@asynccontextmanager
async def open_gateway(settings: Settings) -> AsyncIterator[Gateway]:
    """Open everything but the sockets, and run the background tasks."""
    wanted = settings.egress
    resolver = SystemResolver()
    own = watch_own_servers(settings, resolver)
    await own.refresh()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(_open_database(settings))
        gateway = Gateway(
            _key(settings),
            PolicyCache(_reader(settings, database)),
            Dialer(
                FairResolver(resolver, wanted.lookups_per_workspace),
                lambda: own.current,
                wanted.connect_seconds,
                wanted.connect_seconds,
            ),
            ConnectionLog(utc_now),
            Limits(
                wanted.connections, wanted.connections_per_workspace, wanted.head_seconds, wanted.idle_seconds
            ),
        )

        async def store_log() -> None:
            await _store_log(database, gateway.log)

        stack.push_async_callback(store_log)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [
            tasks.create_task(_repeat(gateway.refresh, wanted.refresh_seconds)),
            tasks.create_task(_repeat(own.refresh, OWN_SERVERS_SECONDS)),
            tasks.create_task(_repeat(store_log, LOG_SECONDS)),
            tasks.create_task(_repeat(gateway.expire, IDLE_CHECK_SECONDS)),
        ]
        try:
            yield gateway
        finally:
            gateway.abort_all()
            for task in running:
                task.cancel()


async def _repeat(action: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await action()


def _reader(settings: Settings, database: Database) -> ReadRules:
    network = NetworkRules(installation_policy(settings), settings.egress.owners_may_loosen)

    async def read(ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, EgressRules]:
        async with database.transaction() as session:
            stored = await load_policies(session, ids)
        return {workspace_id: network.rules_of(policies) for workspace_id, policies in stored.items()}

    return read


async def _store_log(database: Database, log: ConnectionLog) -> None:
    """Store the counts; keep them for the next run if the database is down."""
    counts = log.take()
    if not counts:
        return
    try:
        async with database.transaction() as session:
            await add_to_log(session, counts)
    except Exception as error:
        if not is_outage(error):
            raise
        log.put_back(counts)


def _open_database(settings: Settings) -> Database:
    url = settings.database.url
    if url is None:
        raise SettingsError(["CODEHUB_DATABASE_URL is not set; `codehub up` sets it by itself"])
    return Database(
        create_engine(
            url.get_secret_value(),
            pool_size=POOL_SIZE,
            connect_timeout_seconds=settings.database.connect_timeout_seconds,
            statement_timeout_seconds=settings.database.statement_timeout_seconds,
        )
    )


def _key(settings: Settings) -> str:
    if settings.egress.key is None:
        raise SettingsError(["CODEHUB_EGRESS_KEY is not set; `codehub up` generates it"])
    return settings.egress.key.get_secret_value()
