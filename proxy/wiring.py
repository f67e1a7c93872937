"""Builds the proxy from the settings."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from codehub.bootstrap import FrontPorts, connect_temporal, open_front_ports, subscription_of
from codehub.db.session import Database
from codehub.origins import Origins, origin_of, session_cookie_name
from codehub.policy import policy_of
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
from proxy.pages import Pages
from proxy.responses import Responses
from proxy.transport.server import ProxyServer
from proxy.transport.server_state import Limits
from proxy.workspace_cache import WorkspaceCache
from proxy.workspace_handler import WorkspaceHandler

LAST_FLUSH_SECONDS = 3.0
HTTP_PORT = 80


@dataclass(frozen=True)
class Proxy:
    """The parts of a proxy that its process uses."""

    server: ProxyServer
    front_door: FrontDoor
    activity_log: ActivityLog


@asynccontextmanager
async def open_proxy(settings: Settings) -> AsyncIterator[Proxy]:
    """Open everything but the port, and run the background tasks."""
    client = await connect_temporal(settings, lazy=True)
    async with AsyncExitStack() as stack:
        ports = await stack.enter_async_context(open_front_ports(settings, client))
        waker = Waker(ports.convergence)
        stack.push_async_callback(waker.close)
        activity_log = ActivityLog(ports.buffer, period_seconds=settings.proxy.activity_seconds)
        stack.push_async_callback(_flush_last, activity_log)
        front_door = _build_front_door(settings, ports, waker, activity_log)
        server = ProxyServer(front_door, _limits(settings), scheme=urlsplit(settings.public_base_url).scheme)
        refresher = CacheRefresher(
            front_door.admission.callers, front_door.admission.workspaces, subscription_of(settings)
        )
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [tasks.create_task(refresher.run(server)), tasks.create_task(activity_log.run())]
        try:
            yield Proxy(server, front_door, activity_log)
        finally:
            for task in running:
                task.cancel()


def _build_front_door(
    settings: Settings, ports: FrontPorts, waker: Waker, activity_log: ActivityLog
) -> FrontDoor:
    public = settings.public_base_url
    # Each statement is its own transaction, without the round trips for BEGIN and COMMIT.
    reading = Database(ports.database.engine.execution_options(isolation_level="AUTOCOMMIT"))
    limits = policy_of(settings).limits
    base_path = urlsplit(public).path.rstrip("/")
    workspaces = WorkspaceCache(reading, ports.instances)
    lifecycle = Lifecycle(ports.database, waker, limits)
    responses = Responses(Pages(base_path), limits, base_path)
    return FrontDoor(
        admission=Admission(
            CallerCache(reading),
            workspaces,
            responses,
            Origins(origin_of(public)),
            session_cookie_name(public).encode(),
        ),
        handler=WorkspaceHandler(workspaces, lifecycle, ports.board, activity_log, responses),
        internal_routes=InternalRoutes(workspaces, ports.board, lifecycle, responses),
        responses=responses,
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


async def _flush_last(activity_log: ActivityLog) -> None:
    """Hand on the last activity; give up after a few seconds and lose it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_FLUSH_SECONDS):
            await activity_log.flush()
