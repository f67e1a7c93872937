"""A proxy on real servers, and people who use it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import aiohttp
from sqlalchemy import update

from codehub.adapters.local.root import LocalRoot
from codehub.bootstrap import ensure_homes
from codehub.db.models import Workspace
from codehub.db.session import Database, create_engine
from codehub.domain.conditions import WorkspaceId
from codehub.providers import local_root_of
from codehub.services.credentials import create_token
from codehub.services.identity import sign_in
from codehub.services.passwords import Passwords
from codehub.services.users import add_user
from codehub.settings import Settings, load_settings
from proxy.wiring import Proxy, open_proxy
from testkit.rows import add_workspace
from tests.identities import CHEAP, LIFETIME, PASSWORD

NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
IDLE = {"operation": "NONE", "op_started_at": None, "error_reason": None}
STATES: Mapping[str, Mapping[str, object]] = {
    "RUNNING": {"phase": "RUNNING", "desired_state": "RUNNING"},
    "STANDBY": {"phase": "STANDBY", "desired_state": "STANDBY"},
    "ARCHIVED": {"phase": "ARCHIVED", "desired_state": "ARCHIVED"},
    "PENDING": {"phase": "PENDING", "desired_state": "ARCHIVED"},
    "ERROR": {
        "phase": "ERROR",
        "desired_state": "RUNNING",
        "error_reason": "Timeout",
        "conditions": {"policy.healthy": {"status": "False", "reason": "Timeout", "message": None}},
    },
    "HALTED": {
        "phase": "DELETING",
        "desired_state": "DELETED",
        "deleted_at": datetime(2026, 1, 1, tzinfo=UTC),
        "error_reason": "RetryExceeded",
        "conditions": {"policy.healthy": {"status": "False", "reason": "RetryExceeded", "message": None}},
    },
    "STARTING": {"phase": "STANDBY", "desired_state": "RUNNING"},
    "STOPPING": {"phase": "RUNNING", "desired_state": "STANDBY"},
}


@dataclass(frozen=True)
class Person:
    """A user with a session for a browser and a token for programs."""

    user_id: UUID
    username: str
    session: str
    session_id: UUID
    token: str
    token_id: UUID

    @property
    def cookie(self) -> dict[str, str]:
        return {"Cookie": f"codehub_session={self.session}"}

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def browser(self) -> dict[str, str]:
        """The headers of a browser that opens a page."""
        return {**self.cookie, **NAVIGATION, "Accept": "text/html"}


@dataclass(frozen=True)
class Response:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    text: str
    cookies: list[str]


@dataclass
class FrontDoorHarness:
    """A proxy with its servers."""

    proxy: Proxy
    settings: Settings
    database: Database
    root: LocalRoot
    client: aiohttp.ClientSession
    url: str
    _passwords: Passwords = field(default_factory=lambda: Passwords(CHEAP))

    async def person(self) -> Person:
        username, now = f"user-{uuid4().hex[:12]}", datetime.now(UTC)
        user = await add_user(self.database, self._passwords, username, PASSWORD, role="user", now=now)
        entered = await sign_in(
            self.database, self._passwords, username, PASSWORD, lifetime=LIFETIME, user_agent=None, now=now
        )
        made = await create_token(
            self.database, user.id, "program", expires_at=now + timedelta(hours=1), now=now
        )
        return Person(
            user.id, username, entered.token, entered.caller.credential_id, made.token, made.view.id
        )

    async def workspace(self, owner: Person, state: str = "RUNNING", **columns: Any) -> WorkspaceId:  # noqa: ANN401
        async with self.database.transaction() as session:
            return await add_workspace(session, owner.user_id, **{**STATES[state], **columns})

    async def move(self, workspace_id: WorkspaceId, state: str, **columns: Any) -> None:  # noqa: ANN401
        """Change the row like the workflow does, without an event."""
        async with self.database.transaction() as session:
            await session.execute(
                update(Workspace)
                .where(Workspace.id == UUID(workspace_id))
                .values({**IDLE, **STATES[state], **columns})
            )

    async def row(self, workspace_id: WorkspaceId) -> Workspace:
        async with self.database.transaction() as session:
            row = await session.get(Workspace, UUID(workspace_id))
            assert row is not None
            return row

    async def request(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        data: bytes | Mapping[str, str] | None = None,
    ) -> Response:
        async with self.client.request(
            method, self.url + path, headers=headers, data=data, allow_redirects=False
        ) as response:
            text = await response.text()
            return Response(
                response.status, response.headers, text, response.headers.getall("Set-Cookie", [])
            )


@asynccontextmanager
async def open_front_door(environment: Mapping[str, str]) -> AsyncIterator[FrontDoorHarness]:
    settings = load_settings(environment)
    root = LocalRoot.at(local_root_of(settings))
    url = settings.database.url
    assert url is not None
    timeout = aiohttp.ClientTimeout(total=60)
    jar = aiohttp.DummyCookieJar()
    async with (
        Database(create_engine(url.get_secret_value(), pool_size=5)) as database,
        aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as client,
        open_proxy(settings) as proxy,
    ):
        await ensure_homes(settings, database)
        port = await proxy.server.listen("127.0.0.1", 0)
        try:
            yield FrontDoorHarness(proxy, settings, database, root, client, f"http://127.0.0.1:{port}")
        finally:
            await proxy.server.drain(0)
