"""Makes a proxy out of the settings, and takes it down again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from codehub.bootstrap import FrontPorts, connect_temporal, open_front_ports, policy_of, subscription_of
from codehub.db.session import Database
from codehub.origins import Origins, origin_of, session_cookie_name
from codehub.ports import Upstream
from codehub.services.convergence import Waker
from codehub.settings import Settings
from proxy.activity import ActivityLog
from proxy.admission import Admission
from proxy.cache_refresher import CacheRefresher
from proxy.caller_cache import CallerCache
from proxy.front_door import FrontDoor
from proxy.internal_routes import InternalRoutes
from proxy.lifecycle import Lifecycle
from proxy.pages import Pages, Site
from proxy.responses import Responses
from proxy.transport.server import ProxyServer
from proxy.transport.server_state import Limits
from proxy.workspace_cache import WorkspaceCache
from proxy.workspace_handler import WorkspaceHandler

LAST_FLUSH_SECONDS = 3.0
HTTP_PORT = 80


@dataclass(frozen=True)
class Proxy:
    """The parts that whoever runs it needs."""

    server: ProxyServer
    door: FrontDoor
    book: ActivityLog


@asynccontextmanager
async def open_proxy(settings: Settings) -> AsyncIterator[Proxy]:
    """Everything but the port, with the tasks that run beside it."""
    client = await connect_temporal(settings, lazy=True)
    async with AsyncExitStack() as stack:
        ports = await stack.enter_async_context(open_front_ports(settings, client))
        waker = Waker(ports.convergence)
        stack.push_async_callback(waker.close)
        book = ActivityLog(ports.buffer, period_seconds=settings.proxy.activity_seconds)
        stack.push_async_callback(_flush_last, book)
        door = _front_door(settings, ports, waker, book)
        server = ProxyServer(door, _limits(settings), scheme=urlsplit(settings.public_base_url).scheme)
        keeper = CacheRefresher(door.admission.callers, door.admission.directory, subscription_of(settings))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [tasks.create_task(keeper.run(server)), tasks.create_task(book.run())]
        try:
            yield Proxy(server, door, book)
        finally:
            for task in running:
                task.cancel()


def _front_door(settings: Settings, ports: FrontPorts, waker: Waker, book: ActivityLog) -> FrontDoor:
    public = settings.public_base_url
    # Each statement is a transaction by itself: no BEGIN and COMMIT to wait for.
    reading = Database(ports.database.engine.execution_options(isolation_level="AUTOCOMMIT"))
    limits = policy_of(settings).limits
    base_path = urlsplit(public).path.rstrip("/")
    directory = WorkspaceCache(reading, ports.instances)
    lifecycle = Lifecycle(ports.database, waker, limits)
    replies = Responses(Pages(Site(base_path)), limits, base_path)
    return FrontDoor(
        admission=Admission(
            CallerCache(reading),
            directory,
            replies,
            Origins(origin_of(public)),
            session_cookie_name(public).encode(),
        ),
        hosting=WorkspaceHandler(directory, lifecycle, ports.board, book, replies),
        own_paths=InternalRoutes(directory, ports.board, lifecycle, replies),
        replies=replies,
        api=_api(settings),
    )


def _limits(settings: Settings) -> Limits:
    proxy = settings.proxy
    return Limits(connections=proxy.connections, connections_per_user=proxy.connections_per_user)


def _api(settings: Settings) -> Upstream:
    if settings.proxy.api_url is None:
        return Upstream(settings.api.host, settings.api.port, keep_prefix=True)
    parts = urlsplit(settings.proxy.api_url)
    return Upstream(parts.hostname or "", parts.port or HTTP_PORT, keep_prefix=True)


async def _flush_last(book: ActivityLog) -> None:
    """What cannot be handed on now is lost, and is not worth more than a few seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_FLUSH_SECONDS):
            await book.flush()
