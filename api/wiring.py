"""Builds the context from the settings."""

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
from api.queries import load_live
from api.security.access import CALLBACK
from api.security.rate_limits import RateLimiter
from codehub.bootstrap import (
    connect_temporal,
    histories_of,
    open_identity_provider,
    open_ports,
    subscription_of,
    sweeps_of,
    version_checks,
)
from codehub.db.session import Database
from codehub.domain.single_sign_on import GroupRules
from codehub.egress_policy import installation_policy, is_enforced
from codehub.policy import policy_of
from codehub.providers import editors_of, unsafe_workspaces
from codehub.services.convergence import Waker
from codehub.services.identity import SessionTimes
from codehub.services.network_policies import NetworkRules
from codehub.services.oidc import SingleSignOn
from codehub.services.passwords import Passwords
from codehub.services.workspace_rules import WorkspaceRules
from codehub.settings import Settings

# Requests are served without the other services; what those missed is done later.
REQUIRED = frozenset({"postgresql"})
BURST = 4
DEFAULT_PROVIDER_NAME = "single sign-on"
# An office may share one address.
USERS_PER_ADDRESS = 4


@asynccontextmanager
async def open_context(settings: Settings) -> AsyncIterator[Context]:
    """Open everything that requests need, and run the background tasks."""
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
            limits=policy.limits,
            idle_times=policy.idle_times,
            rules=WorkspaceRules(policy.allowed_images, policy.longest_idle_times),
            network=NetworkRules(installation_policy(settings), settings.egress.owners_may_loosen),
            sharing=settings.sharing_rules,
            options=_options(settings),
            single_sign_on=await stack.enter_async_context(_open_single_sign_on(settings)),
            dependencies=[Dependency(name, name in REQUIRED, check) for name, check in checks.items()],
        )
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        background = (hub.run(), end_revoked_streams(context), end_suspect_streams(context))
        running = [tasks.create_task(each) for each in background]
        try:
            yield context
        finally:
            await hub.close()
            for task in running:
                task.cancel()


def _rates(settings: Settings) -> Rates:
    per_second = settings.api.requests_per_second
    per_minute = settings.api.sign_ins_per_minute
    return Rates(
        callers=RateLimiter(per_second, per_second * BURST, time.monotonic),
        anonymous=RateLimiter(
            per_second * USERS_PER_ADDRESS, per_second * USERS_PER_ADDRESS * BURST, time.monotonic
        ),
        sign_ins=RateLimiter(per_minute / 60, per_minute, time.monotonic),
    )


@asynccontextmanager
async def _open_single_sign_on(settings: Settings) -> AsyncIterator[SingleSignOn | None]:
    async with open_identity_provider(settings, CALLBACK) as provider:
        oidc = settings.oidc
        rules = GroupRules(_names(oidc.allowed_groups), _names(oidc.admin_groups))
        issuer = oidc.issuer
        yield (
            SingleSignOn(provider, issuer, oidc.name or DEFAULT_PROVIDER_NAME, rules)
            if provider and issuer
            else None
        )


def _names(text: str | None) -> frozenset[str]:
    return frozenset(name.strip() for name in (text or "").split(",") if name.strip())


def _options(settings: Settings) -> Options:
    return Options(
        origins=settings.origins,
        temporal_ui_url=settings.temporal.ui_url,
        temporal_namespace=settings.temporal.namespace,
        session_times=SessionTimes(
            timedelta(seconds=settings.api.session_seconds),
            timedelta(seconds=settings.api.session_idle_seconds),
        ),
        confirm_window=timedelta(seconds=settings.api.confirm_seconds),
        undelete_period=timedelta(seconds=settings.gc.undelete_seconds),
        max_body_bytes=settings.api.max_body_bytes,
        instance_backend=settings.workspaces.instance_backend,
        storage_backend=settings.workspaces.storage_backend,
        default_image_ref=settings.workspaces.default_image_ref,
        editors=editors_of(settings),
        unsafe_workspaces=unsafe_workspaces(settings),
        has_egress_gateway=is_enforced(settings),
        admins_need_second_factor=settings.api.admin_second_factor == "required",
        admin_passwords_only=settings.oidc.password_sign_in == "administrators",  # noqa: S105
    )
