"""Builds the proxy from the settings."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from codehub.bootstrap import FrontPorts, connect_temporal, open_front_ports, subscription_of
from codehub.db.session import Database
from codehub.origins import OriginMode, Origins
from codehub.policy import policy_of
from codehub.ports import Upstream
from codehub.security_headers import security_headers
from codehub.services.convergence import Waker
from codehub.settings import Settings
from codehub.settings.types import split_networks
from proxy.activity import ActivityLog
from proxy.admission import Admission, PortAdmission
from proxy.cache_refresher import CacheRefresher
from proxy.caller_cache import CallerCache
from proxy.cookie_refusals import CookieRefusals, PortCookieRefusals
from proxy.entrance import Entrance
from proxy.front_door import ID_END, FrontDoor
from proxy.hosts import Hosts
from proxy.internal_routes import InternalRoutes, OwnOriginRoutes
from proxy.lifecycle import Lifecycle
from proxy.pages import Pages
from proxy.port_access import Guests, PortAccess
from proxy.port_handler import PortHandler, PortRoutes
from proxy.request_kind import IsOwnOrigin
from proxy.responses import OwnOriginResponses, Responses
from proxy.transport.server import ProxyServer
from proxy.transport.server_state import Edge, Limits
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
        server = ProxyServer(front_door, _limits(settings), edge=_edge(settings))
        callers, workspaces = front_door.admission.callers, front_door.admission.workspaces
        guests = Guests(workspaces, front_door.ports.access.sharing)
        refresher = CacheRefresher(callers, workspaces, subscription_of(settings), guests)
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
    # Each statement is its own transaction, without the round trips for BEGIN and COMMIT.
    reading = Database(ports.database.engine.execution_options(isolation_level="AUTOCOMMIT"))
    origins, limits = settings.origins, policy_of(settings).limits
    base_path = urlsplit(origins.public_url).path.rstrip("/")
    workspaces = WorkspaceCache(reading, ports.instances)
    lifecycle = Lifecycle(ports.database, waker, limits)
    responses = Responses(Pages(base_path, form_targets=origins.form_targets), limits, base_path)
    admission = Admission(
        CallerCache(reading),
        workspaces,
        responses,
        _is_main_origin(origins),
        origins.session_cookie.encode(),
        names_site=origins.names_site,
    )
    internal_routes = InternalRoutes(workspaces, ports.board, lifecycle, responses)
    handler = WorkspaceHandler(workspaces, lifecycle, ports.board, activity_log, responses, ID_END)
    port_handler = PortHandler(
        workspaces, lifecycle, ports.board, activity_log, responses, outcomes=handler.outcomes
    )
    path_mode = FrontDoor(
        hosts=Hosts(origins),
        admission=admission,
        handler=handler,
        internal_routes=internal_routes,
        entrance=None,
        responses=responses,
        cookie_refusals=_cookie_refusals(origins, responses.pages),
        main_origin=origins.main,
        api=_api(settings),
        ports=PortRoutes(
            PortAccess(admission, settings.sharing_rules.sharing, admission.outcomes),
            port_handler,
            internal_routes,
        ),
    )
    return _with_own_origins(path_mode, origins, ports) if origins.are_separate else path_mode


def _with_own_origins(main: FrontDoor, origins: Origins, ports: FrontPorts) -> FrontDoor:
    """Serve workspaces on their own origins, and the entrance on the main origin."""
    admission, handler, lifecycle = main.admission, main.handler, main.handler.lifecycle
    pages = Pages(origins.public_url, on_own_origin=True)
    kind_of_admission = PortAdmission if origins.mode is OriginMode.PORT else Admission
    responses = OwnOriginResponses(
        pages, main.responses.limits, base_path=main.responses.base_path, origins=origins
    )
    own_admission = kind_of_admission(
        admission.callers,
        admission.workspaces,
        responses,
        _is_origin_of_host(origins),
        origins.workspace_cookie.encode(),
        of_workspace=True,
        names_site=origins.names_site,
        outcomes=admission.outcomes,
    )
    own_routes = OwnOriginRoutes(handler.workspaces, ports.board)
    return replace(
        main,
        admission=own_admission,
        handler=replace(handler, responses=responses, prefix_length=0),
        internal_routes=own_routes,
        entrance=Entrance(
            admission,
            main.internal_routes,
            lifecycle,
            main.responses,
            origins,
            ports.database,
            main.ports.access,
        ),
        ports=PortRoutes(
            replace(main.ports.access, admission=own_admission),
            replace(main.ports.handler, responses=responses),
            own_routes,
        ),
        has_ports=origins.has_ports,
    )


def _cookie_refusals(origins: Origins, pages: Pages) -> CookieRefusals:
    of_main = (origins.session_cookie, origins.sign_in_cookie, origins.device_cookie)
    names, workspace = tuple(each.encode() for each in of_main), origins.workspace_cookie.encode()
    if origins.mode is OriginMode.PORT:
        return PortCookieRefusals(pages, names, workspace)
    return CookieRefusals(pages, (*names, workspace))


def _is_main_origin(origins: Origins) -> IsOwnOrigin:
    main = origins.main.encode()
    return lambda _head, origin: origin == main


def _is_origin_of_host(origins: Origins) -> IsOwnOrigin:
    """Compare with the request's host, which the router has checked."""
    start = f"{origins.scheme}://".encode()
    return lambda head, origin: origin == start + (head.host or b"")


def _limits(settings: Settings) -> Limits:
    proxy = settings.proxy
    return Limits(
        connections=proxy.connections,
        connections_per_address=proxy.connections_per_address,
        connections_per_user=proxy.connections_per_user,
        body_bytes_per_second=proxy.body_bytes_per_second,
    )


def _edge(settings: Settings) -> Edge:
    scheme = urlsplit(settings.public_base_url).scheme
    return Edge(
        scheme=scheme,
        headers=tuple(security_headers(https=scheme == "https").items()),
        trusted_proxies=split_networks(settings.proxy.trusted_proxies),
    )


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
