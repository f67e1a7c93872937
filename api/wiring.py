"""Makes a context out of the settings, and takes it down again."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from uuid import UUID

from api.context import Context, Options, Rates
from api.health_checks import Dependency
from api.live.hub import LiveHub
from api.live.revocation import end_revoked_streams, end_suspect_streams
from api.live.wire import LiveWorkspace
from api.metrics import Metrics
from api.security.rate_limits import RateLimiter
from api.serializers import serialize_live
from codehub.bootstrap import (
    connect_temporal,
    histories_of,
    open_ports,
    policy_of,
    subscription_of,
    sweeps_of,
    version_checks,
)
from codehub.db.session import Database
from codehub.db.views import ViewFilter, list_views, list_views_by_id
from codehub.domain.conditions import WorkspaceId
from codehub.origins import Origins, origin_of
from codehub.providers import editors_of
from codehub.services.convergence import Waker
from codehub.services.passwords import Passwords
from codehub.settings import Settings

# The database alone is needed for every answer; what the others are for is made up for later.
REQUIRED = frozenset({"postgresql"})
BURST = 4
# A whole office may share an address.
STRANGERS = 4
SNAPSHOT_SIZE = 10_000


@asynccontextmanager
async def open_context(settings: Settings) -> AsyncIterator[Context]:
    """Everything that requests need, with the tasks that run beside them."""
    client = await connect_temporal(settings, lazy=True)
    async with AsyncExitStack() as stack:
        ports = await stack.enter_async_context(open_ports(settings, client))
        policy = policy_of(settings)
        checks = version_checks(settings, ports, client)
        waker = Waker(ports.convergence)
        stack.push_async_callback(waker.close)

        async def load(user_id: UUID, ids: Collection[str] | None) -> Sequence[LiveWorkspace]:
            return await load_live(context, user_id, ids)

        hub = LiveHub(subscription_of(settings), load, ports.board)
        context = Context(
            database=ports.database,
            reading=Database(ports.database.engine.execution_options(isolation_level="AUTOCOMMIT")),
            passwords=Passwords(),
            instances=ports.instances,
            board=ports.board,
            sweeps=sweeps_of(client),
            histories=histories_of(client),
            hub=hub,
            waker=waker,
            metrics=Metrics(),
            rates=_rates(settings),
            origins=Origins(origin_of(settings.public_base_url)),
            limits=policy.limits,
            idle_times=policy.idle_times,
            options=_options(settings),
            dependencies=[Dependency(name, name in REQUIRED, ask) for name, ask in checks.items()],
        )
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        beside = (hub.run(), end_revoked_streams(context), end_suspect_streams(context))
        running = [tasks.create_task(each) for each in beside]
        try:
            yield context
        finally:
            await hub.close()
            for task in running:
                task.cancel()


async def load_live(context: Context, user_id: UUID, ids: Collection[str] | None) -> Sequence[LiveWorkspace]:
    """What a user sees: of these ids, or of everything."""
    async with context.reading.transaction() as session:
        if ids is None:
            page = await list_views(session, ViewFilter(user_id), after=None, limit=SNAPSHOT_SIZE)
            views = list(page.items)
        else:
            views = await list_views_by_id(session, [WorkspaceId(each) for each in ids])
    return [serialize_live(view, context) for view in views if view.owner_user_id == user_id]


def _rates(settings: Settings) -> Rates:
    per_second = settings.api.requests_per_second
    per_minute = settings.api.sign_ins_per_minute
    return Rates(
        callers=RateLimiter(per_second, per_second * BURST, time.monotonic),
        strangers=RateLimiter(per_second * STRANGERS, per_second * STRANGERS * BURST, time.monotonic),
        sign_ins=RateLimiter(per_minute / 60, per_minute, time.monotonic),
    )


def _options(settings: Settings) -> Options:
    return Options(
        public_base_url=settings.public_base_url,
        temporal_ui_url=settings.temporal.ui_url,
        temporal_namespace=settings.temporal.namespace,
        session_lifetime=timedelta(seconds=settings.api.session_seconds),
        undelete_period=timedelta(seconds=settings.gc.undelete_seconds),
        max_body_bytes=settings.api.max_body_bytes,
        instance_backend=settings.workspaces.instance_backend,
        storage_backend=settings.workspaces.storage_backend,
        default_image_ref=settings.workspaces.default_image_ref,
        editors=editors_of(settings),
    )
