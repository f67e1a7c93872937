"""The objects that requests share, created once when the API starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast
from urllib.parse import quote

from fastapi import Depends, Request

from api.health_checks import Dependency
from api.live.hub import LiveHub
from api.metrics import Metrics
from api.security.rate_limits import RateLimiter
from codehub.db.session import Database
from codehub.domain.limits import IdleTimes, RunningLimits
from codehub.domain.port_shares import SharingRules
from codehub.origins import Origins
from codehub.ports import Histories, Instances, ProgressBoard, Sweeps
from codehub.providers import Editors
from codehub.services.convergence import Waker
from codehub.services.identity import Caller, SessionTimes
from codehub.services.network_policies import NetworkRules
from codehub.services.oidc import SingleSignOn
from codehub.services.passwords import Passwords
from codehub.services.requests import RequestContext
from codehub.services.workspace_rules import WorkspaceRules


@dataclass(frozen=True)
class Options:
    """Settings that the routes need."""

    origins: Origins
    temporal_ui_url: str | None
    temporal_namespace: str
    session_times: SessionTimes
    # How long after a password entry a session may create tokens and change accounts.
    confirm_window: timedelta
    undelete_period: timedelta
    max_body_bytes: int
    instance_backend: str
    storage_backend: str
    default_image_ref: str
    editors: Editors
    # Whether workspaces run without a sandbox.
    unsafe_workspaces: bool
    # Whether workspaces reach the outside only through the egress gateway.
    has_egress_gateway: bool
    # Whether only administrators may sign in with a password.
    admin_passwords_only: bool
    # Whether administrators with a password must also use an authenticator app.
    admins_need_second_factor: bool

    @property
    def is_https(self) -> bool:
        return self.origins.scheme == "https"

    @property
    def cookie_name(self) -> str:
        return self.origins.session_cookie

    def temporal_url_of(self, query: str) -> str | None:
        """Return the page of the Temporal Web UI that lists the workflows of this query."""
        if self.temporal_ui_url is None:
            return None
        return f"{self.temporal_ui_url}/namespaces/{self.temporal_namespace}/workflows?query={quote(query)}"


@dataclass(frozen=True)
class Rates:
    """Rate limits: signed-in callers by user, anonymous requests and sign-ins by address."""

    callers: RateLimiter
    anonymous: RateLimiter
    sign_ins: RateLimiter


@dataclass(frozen=True)
class Context:
    """Everything that routes may use."""

    database: Database
    # The same connections in autocommit mode: single reads do not wait for BEGIN and COMMIT.
    reading: Database
    passwords: Passwords
    instances: Instances
    board: ProgressBoard
    sweeps: Sweeps
    histories: Histories
    hub: LiveHub
    waker: Waker
    metrics: Metrics
    rates: Rates
    limits: RunningLimits
    idle_times: IdleTimes
    rules: WorkspaceRules
    network: NetworkRules
    sharing: SharingRules
    options: Options
    single_sign_on: SingleSignOn | None
    dependencies: Sequence[Dependency]

    def now(self) -> datetime:
        return datetime.now(UTC)

    def request_by(self, caller: Caller, address: str | None = None) -> RequestContext:
        """Return the context of a request that this caller makes now."""
        return RequestContext(caller.username, self.limits, self.now(), caller.user_id, address)


def context_of(request: Request) -> Context:
    return cast("Context", request.app.state.context)


# Async, because FastAPI runs other dependencies in a thread.
async def _context(request: Request) -> Context:
    return context_of(request)


ApiContext = Annotated[Context, Depends(_context)]
