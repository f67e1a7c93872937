"""A proxy on real servers, and people who use it."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import aiohttp
from sqlalchemy import update
from yarl import URL

from codehub.adapters.local.root import LocalRoot
from codehub.bootstrap import ensure_homes
from codehub.db.models import Workspace
from codehub.db.session import Database, create_engine
from codehub.domain.conditions import WorkspaceId
from codehub.origins import OriginMode, Origins
from codehub.providers import local_root_of
from codehub.services.credentials import create_token
from codehub.services.identity import SessionTimes, SignInClient, sign_in
from codehub.services.passwords import Passwords
from codehub.services.users import add_user
from codehub.services.workspace_sessions import issue_ticket, redeem_ticket
from codehub.settings import Settings, load_settings
from proxy.wiring import Proxy, open_proxy
from testkit.rows import BY, add_workspace
from tests.identities import CHEAP, LIFETIME, PASSWORD

# A path on the workspace's own origin; forms are on the main origin.
WORKSPACE_PATH = re.compile(r"/w/([0-9a-f-]{36})(/(?!\.codehub/(?!progress)).*)")
SESSION_COOKIE = re.compile(r"(?<![-\w])codehub_session=([^;]*)")
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
    origins: Origins
    _passwords: Passwords = field(default_factory=lambda: Passwords(CHEAP))
    # The sessions of people, and the tokens of the workspaces that they have entered.
    _sessions: dict[str, UUID] = field(default_factory=dict)
    _entered: dict[tuple[str, WorkspaceId], str] = field(default_factory=dict)

    async def person(self) -> Person:
        username, now = f"user-{uuid4().hex[:12]}", datetime.now(UTC)
        user = await add_user(self.database, self._passwords, username, PASSWORD, role="user", by=BY, now=now)
        entered = await sign_in(
            self.database,
            self._passwords,
            username,
            PASSWORD,
            times=SessionTimes(LIFETIME),
            client=SignInClient(),
            now=now,
        )
        made = await create_token(
            self.database, user.id, "program", expires_at=now + timedelta(hours=1), by=BY, now=now
        )
        self._sessions[entered.token] = entered.caller.credential_id
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
        """Send a request like a browser that has entered the workspace of a path below `/w/`.

        It goes to the workspace's own origin; from there, a redirect to the main origin is followed.
        """
        target, sent = await self.locate(path, headers or {})
        response = await self._send(target, sent, method, data)
        if response.headers.get("Location") == self.origins.public_url + path:
            return await self._send(path, self._for_main(headers or {}), method, data)
        return response

    async def connect(self, path: str, headers: Mapping[str, str]) -> aiohttp.ClientWebSocketResponse:
        target, sent = await self.locate(path, headers)
        return await self.client.ws_connect(self.url + target, headers=sent)

    async def on_main(self, path: str, headers: Mapping[str, str], *, method: str = "GET") -> Response:
        """Send a request to the main origin, regardless of its path."""
        return await self._send(path, self._for_main(headers), method, None)

    async def on_own(
        self, workspace_id: WorkspaceId, path: str, headers: Mapping[str, str], *, method: str = "GET"
    ) -> Response:
        """Send a request to a workspace's own origin, without cookies except those in these headers."""
        host = (await self.own_origin(workspace_id)).partition("//")[2]
        return await self._send(path, {**headers, "Host": host}, method, None)

    async def own_origin(self, workspace_id: WorkspaceId) -> str:
        number = (
            (await self.row(workspace_id)).origin_number if self.origins.mode is OriginMode.PORT else None
        )
        own = self.origins.origin_of(workspace_id, number)
        assert own is not None, "nobody has opened the workspace yet"
        return own

    async def locate(self, path: str, headers: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Return the path and the headers on the origin that serves this path."""
        found = WORKSPACE_PATH.fullmatch(path)
        if found is None or not self.origins.are_separate:
            return path, self._for_main(headers)
        workspace_id = WorkspaceId(found[1])
        own = await self.own_origin(workspace_id)
        sent = {**headers, "Host": own.partition("//")[2]}
        if (cookie := SESSION_COOKIE.search(sent.get("Cookie", ""))) is not None:
            entered = await self.enter(cookie[1], workspace_id)
            sent["Cookie"] = SESSION_COOKIE.sub(f"codehub_workspace={entered}", sent["Cookie"])
        if sent.get("Origin") == self.url:
            sent["Origin"] = own
        return found[2], sent

    async def enter(self, session: str, workspace_id: WorkspaceId) -> str:
        """Return the token of this workspace's cookie for a session; return an invalid session unchanged."""
        known = self._entered.get((session, workspace_id))
        if known is not None or session not in self._sessions:
            return known or session
        now = datetime.now(UTC)
        ticket = await issue_ticket(self.database, self._sessions[session], workspace_id, now=now)
        token = ticket and await redeem_ticket(self.database, ticket, workspace_id, now=now)
        if token is None:
            return session
        self._entered[session, workspace_id] = token
        return token

    def _for_main(self, headers: Mapping[str, str]) -> dict[str, str]:
        main = {"Origin": self.origins.main} if headers.get("Origin") == self.url else {}
        return {**headers, "Host": self.origins.main.partition("//")[2], **main}

    async def _send(
        self,
        path: str,
        headers: Mapping[str, str],
        method: str,
        data: bytes | Mapping[str, str] | None,
    ) -> Response:
        async with self.client.request(
            method,
            URL(self.url + path, encoded=True),
            headers=headers,
            data=data,
            allow_redirects=False,
        ) as response:
            text = await response.text()
            return Response(
                response.status, response.headers, text, response.headers.getall("Set-Cookie", [])
            )


@asynccontextmanager
async def open_front_door(environment: Mapping[str, str]) -> AsyncIterator[FrontDoorHarness]:
    settings = load_settings(environment)
    root = LocalRoot.at(local_root_of(settings))
    database_url = settings.database.url
    assert database_url is not None
    timeout = aiohttp.ClientTimeout(total=60)
    jar = aiohttp.DummyCookieJar()
    async with (
        Database(create_engine(database_url.get_secret_value(), pool_size=5)) as database,
        aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as client,
        open_proxy(settings) as proxy,
    ):
        await ensure_homes(settings, database)
        port = await proxy.server.listen("127.0.0.1", 0)
        try:
            url = f"http://127.0.0.1:{port}"
            yield FrontDoorHarness(proxy, settings, database, root, client, url, settings.origins)
        finally:
            await proxy.server.drain(0)
