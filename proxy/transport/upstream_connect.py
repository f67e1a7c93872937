"""The way to an upstream that no resting connection leads to."""

from typing import NamedTuple

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Collect, Forward, Response, Router, Stream
from proxy.transport.shared import Counters
from proxy.transport.upstream_pool import UpstreamConnection, UpstreamPool


class Opened(NamedTuple):
    """A connection, and the route that it was opened for."""

    route: Forward
    connection: UpstreamConnection


async def open_upstream(
    head: RequestHead, route: Forward, pool: UpstreamPool, router: Router, counters: Counters
) -> Opened | Response | Stream | Collect:
    """Connect; if that fails, ask the router once more: the instance may have moved."""
    if (connection := await connect(route, pool, counters)) is not None:
        return Opened(route, connection)
    routed = await router.route_again(head, route)
    if not isinstance(routed, Forward):
        return routed
    if (connection := await connect(routed, pool, counters)) is not None:
        return Opened(routed, connection)
    return router.unreachable(head, routed)


async def connect(route: Forward, pool: UpstreamPool, counters: Counters) -> UpstreamConnection | None:
    try:
        return await pool.connect(route)
    except (OSError, TimeoutError):
        counters.upstream_failures["connect"] += 1
        return None
