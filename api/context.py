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
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import IdleTimes, RunningLimits
from codehub.origins import Origins, session_cookie_name
from codehub.ports import Histories, Instances, ProgressBoard, Sweeps
from codehub.providers import Editors
from codehub.services.convergence import Waker
from codehub.services.identity import Caller
from codehub.services.passwords import Passwords
from codehub.services.requests import RequestContext


@dataclass(frozen=True)
class Options:
    """Settings that the routes need."""

    public_base_url: str
    temporal_ui_url: str | None
    temporal_namespace: str
    session_lifetime: timedelta
    undelete_period: timedelta
    max_body_bytes: int
    instance_backend: str
    storage_backend: str
    default_image_ref: str
    editors: Editors

    @property
    def is_https(self) -> bool:
        return self.public_base_url.startswith("https://")

    @property
    def cookie_name(self) -> str:
        return session_cookie_name(self.public_base_url)

    def url_of(self, workspace_id: WorkspaceId) -> str:
        return f"{self.public_base_url}/w/{workspace_id}/"

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
    origins: Origins
    limits: RunningLimits
    idle_times: IdleTimes
    options: Options
    dependencies: Sequence[Dependency]

    def now(self) -> datetime:
        return datetime.now(UTC)

    def request_by(self, caller: Caller) -> RequestContext:
        """Return the context of a request that this caller makes now."""
        return RequestContext(caller.username, self.limits, self.now())


def context_of(request: Request) -> Context:
    return cast("Context", request.app.state.context)


# Async, because FastAPI runs other dependencies in a thread.
async def _context(request: Request) -> Context:
    return context_of(request)


ApiContext = Annotated[Context, Depends(_context)]
