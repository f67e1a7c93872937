"""All kinds of callers, and a valid request for every route."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

import httpx
import pyotp
import pytest
from sqlalchemy import text, update

from api.security.access import ADMIN_DISK, ADMIN_NETWORK, ADMIN_USER, API, CALLBACK, WORKSPACE, Access
from api.security.csrf import CSRF_HEADER, csrf_token_of
from codehub.db.authenticators import delete_authenticator, enable_authenticator, replace_authenticator
from codehub.db.credentials import SessionView, TokenView, insert_session, insert_token
from codehub.db.models import ApiToken, Session, User
from codehub.domain.port_shares import Audience, PortShare, serialize
from codehub.domain.states import Operation
from codehub.services.credentials import hash_token, new_api_token, new_session_token
from testkit.rows import add_workspace
from tests.api.harness import PASSWORD, ApiHarness
from tests.api.stream_requests import status_of_stream
from tests.api.workspace_rows import claim

__all__ = ["harness"]

Route = tuple[str, str]
UNCHANGED_METHODS = frozenset({"GET"})
STREAMS = frozenset({("GET", f"{API}/events")})
LIFETIME = timedelta(hours=1)
TABLES = text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
LINES = "SELECT '{table}' || (to_jsonb(t) - 'last_used_at' - 'last_seen_at')::text AS line FROM {table} t"


class Kind(StrEnum):
    """A kind of caller; those with an invalid credential are administrators, so nothing else stops them."""

    ANONYMOUS = "anonymous"
    OTHER = "other user"
    OWNER = "owner"
    OWNER_TOKEN = "owner by token"  # noqa: S105
    ADMIN = "admin"
    ADMIN_TOKEN = "admin by token"  # noqa: S105
    DISABLED = "disabled user"
    DISABLED_TOKEN = "disabled user by token"  # noqa: S105
    EXPIRED_SESSION = "expired session"
    REVOKED_SESSION = "revoked session"
    EXPIRED_TOKEN = "expired token"  # noqa: S105
    REVOKED_TOKEN = "revoked token"  # noqa: S105


STRANGERS = frozenset(
    {
        Kind.ANONYMOUS,
        Kind.DISABLED,
        Kind.DISABLED_TOKEN,
        Kind.EXPIRED_SESSION,
        Kind.REVOKED_SESSION,
        Kind.EXPIRED_TOKEN,
        Kind.REVOKED_TOKEN,
    }
)
ADMINS = frozenset({Kind.ADMIN, Kind.ADMIN_TOKEN})
OWNERS = frozenset({Kind.OWNER, Kind.OWNER_TOKEN})
ALLOWED: dict[Access, frozenset[Kind]] = {
    Access.PUBLIC: frozenset(Kind),
    Access.OPERATOR: frozenset(Kind),
    Access.USER: frozenset(Kind) - STRANGERS,
    Access.OWNER: ADMINS | OWNERS,
    Access.OWNER_ALONE: OWNERS,
    Access.ADMIN: ADMINS,
}
BY_TOKEN = frozenset(
    {Kind.OWNER_TOKEN, Kind.ADMIN_TOKEN, Kind.DISABLED_TOKEN, Kind.EXPIRED_TOKEN, Kind.REVOKED_TOKEN}
)


@dataclass(frozen=True)
class CallerCredentials:
    """A caller with a fresh credential, because a request may end it."""

    user_id: UUID
    headers: dict[str, str]
    credential_id: UUID | None = None


@dataclass(frozen=True)
class Sent:
    """A valid request to a route."""

    path: str
    body: dict[str, Any] | None = None


@dataclass
class MatrixHarness:
    """Users that are created once, and the resources that are created for each request."""

    harness: ApiHarness
    people: dict[str, UUID]
    names: dict[str, str]
    client: httpx.AsyncClient = field(init=False)
    statement: str = ""

    def __post_init__(self) -> None:
        self.client = self.harness.stranger()

    async def caller(self, kind: Kind) -> CallerCredentials:
        now = self.harness.context.now()
        user_id = self.people[_person_of(kind)]
        if kind is Kind.ANONYMOUS:
            return CallerCredentials(user_id, {})
        if kind in BY_TOKEN:
            expires_at = now - LIFETIME if kind is Kind.EXPIRED_TOKEN else now + LIFETIME * 24 * 365
            token_id, token = await self.add_token(user_id, expires_at)
            if kind is Kind.REVOKED_TOKEN:
                await self._execute(update(ApiToken).where(ApiToken.id == token_id).values(revoked_at=now))
            return CallerCredentials(user_id, {"Authorization": f"Bearer {token}"}, token_id)
        expires_at = now - LIFETIME if kind is Kind.EXPIRED_SESSION else now + LIFETIME
        session_id, cookie = await self.add_session(user_id, expires_at)
        if kind is Kind.REVOKED_SESSION:
            await self._execute(update(Session).where(Session.id == session_id).values(revoked_at=now))
        headers = {"Cookie": f"codehub_session={cookie}", CSRF_HEADER: csrf_token_of(cookie)}
        return CallerCredentials(user_id, headers, session_id)

    async def add_session(self, user_id: UUID, expires_at: datetime) -> tuple[UUID, str]:
        now = self.harness.context.now()
        view, secret = SessionView(uuid4(), now, expires_at, now, None), new_session_token()
        async with self.harness.context.database.transaction() as session:
            await insert_session(session, user_id, view, hash_token(secret))
        return view.id, secret

    async def add_token(self, user_id: UUID, expires_at: datetime) -> tuple[UUID, str]:
        now = self.harness.context.now()
        view, secret = TokenView(uuid4(), "program", now, expires_at, None, None), new_api_token()
        async with self.harness.context.database.transaction() as session:
            await insert_token(session, user_id, view, hash_token(secret))
        return view.id, secret

    async def add_workspace(self, **columns: Any) -> str:  # noqa: ANN401
        async with self.harness.context.database.transaction() as session:
            return await add_workspace(session, self.people["owner"], **columns)

    async def remove_authenticator(self, user_id: UUID) -> None:
        async with self.harness.context.database.transaction() as session:
            await delete_authenticator(session, user_id)

    async def set_authenticator(self, user_id: UUID, *, enabled: bool = False) -> str:
        """Give the user an authenticator app; return its secret."""
        now, secret = self.harness.context.now(), pyotp.random_base32()
        async with self.harness.context.database.transaction() as session:
            await replace_authenticator(session, user_id, secret, now)
            if enabled:
                await enable_authenticator(session, user_id, now)
        return secret

    async def fingerprint(self) -> str:
        """Return a digest of everything in the database but the times of last use."""
        async with self.harness.context.database.transaction() as session:
            if not self.statement:
                tables = await session.scalars(TABLES)
                self.statement = " UNION ALL ".join(LINES.format(table=table) for table in sorted(tables))
            digest = text(f"SELECT md5(string_agg(line, '' ORDER BY line)) FROM ({self.statement}) AS lines")  # noqa: S608
            return str(await session.scalar(digest))

    async def send(self, route: Route, caller: CallerCredentials, sent: Sent) -> int:
        method, _ = route
        if route in STREAMS:
            return await status_of_stream(self.harness.app, method, sent.path, caller.headers)
        response = await self.client.request(method, sent.path, json=sent.body, headers=caller.headers)
        # The cookie that login sets must not authenticate the next caller.
        self.client.cookies.clear()
        return response.status_code

    async def _execute(self, statement: Any) -> None:  # noqa: ANN401
        async with self.harness.context.database.transaction() as session:
            await session.execute(statement)


def _person_of(kind: Kind) -> str:
    if kind in {Kind.OTHER, Kind.ANONYMOUS}:
        return "other"
    if kind in OWNERS:
        return "owner"
    return "disabled" if kind in {Kind.DISABLED, Kind.DISABLED_TOKEN} else "admin"


Prepare = Callable[[MatrixHarness, CallerCredentials], Awaitable[Sent]]


def _at(path: str, body: dict[str, Any] | None = None) -> Prepare:
    async def prepare(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
        return Sent(path, body)

    return prepare


def _about_workspace(
    suffix: str = "",
    body: dict[str, Any] | None = None,
    **columns: Any,  # noqa: ANN401
) -> Prepare:
    async def prepare(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
        workspace_id = await harness.add_workspace(**columns)
        return Sent(f"{API}/workspaces/{workspace_id}{suffix}", body)

    return prepare


async def _sign_in(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    return Sent(f"{API}/login", {"username": harness.names["owner"], "password": PASSWORD})


async def _add_authenticator(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    await harness.remove_authenticator(caller.user_id)
    return Sent(f"{API}/authenticator")


async def _enable_authenticator(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    secret = await harness.set_authenticator(caller.user_id)
    return Sent(f"{API}/authenticator/enable", {"code": pyotp.TOTP(secret).now()})


async def _remove_authenticator(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    await harness.set_authenticator(caller.user_id, enabled=True)
    return Sent(f"{API}/authenticator")


async def _reset_authenticator(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    user_id = harness.people["bystander"]
    await harness.set_authenticator(user_id, enabled=True)
    return Sent(f"{API}/admin/users/{user_id}/authenticator")


async def _revoke_session(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    session_id, _ = await harness.add_session(caller.user_id, harness.harness.context.now() + LIFETIME)
    return Sent(f"{API}/sessions/{session_id}")


async def _revoke_token(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    token_id, _ = await harness.add_token(caller.user_id, harness.harness.context.now() + LIFETIME)
    return Sent(f"{API}/tokens/{token_id}")


async def _add_user(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    return Sent(f"{API}/admin/users", {"username": f"new-{uuid4().hex[:12]}", "password": PASSWORD})


async def _read_user(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    return Sent(f"{API}/admin/users/{harness.people['bystander']}")


async def _change_user(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    # The salt of the password differs each time, so the row changes.
    user_id = harness.people["bystander"]
    return Sent(f"{API}/admin/users/{user_id}", {"role": "user", "disabled": False, "password": PASSWORD})


async def _read_steps(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    workspace_id = await harness.add_workspace()
    operation_id = await claim(harness.harness.context.database, workspace_id, Operation.STARTING)
    return Sent(f"{API}/workspaces/{workspace_id}/operations/{operation_id}/steps")


async def _limit_network(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    workspace_id = await harness.add_workspace()
    return Sent(f"{API}/admin/workspaces/{workspace_id}/network", {"mode": "none"})


async def _limit_disk(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    workspace_id = await harness.add_workspace()
    return Sent(f"{API}/admin/workspaces/{workspace_id}/disk", {"limit_bytes": 1})


async def _recover_many(harness: MatrixHarness, caller: CallerCredentials) -> Sent:
    workspace_id = await harness.add_workspace(phase="ERROR", error_reason="Timeout")
    return Sent(f"{API}/admin/errors/recover", {"ids": [workspace_id]})


IN_ERROR: dict[str, Any] = {"phase": "ERROR", "error_reason": "Timeout"}
BEING_DELETED: dict[str, Any] = {
    "phase": "STANDBY",
    "desired_state": "DELETED",
    "deleted_at": datetime.fromisoformat("2026-07-01T12:00:00Z"),
}
SHARED_AT = datetime.fromisoformat("2026-07-01T12:00:00Z")
REQUESTS: dict[Route, Prepare] = {
    ("GET", "/"): _at("/"),
    ("GET", "/login"): _at("/login"),
    ("GET", "/workspaces/{workspace_id}"): _at("/workspaces/any"),
    ("GET", "/account"): _at("/account"),
    ("GET", "/admin"): _at("/admin"),
    ("GET", "/admin/audit"): _at("/admin/audit"),
    ("GET", "/admin/egress"): _at("/admin/egress"),
    ("GET", "/assets/{digest}/{name}"): _at("/assets/any/dom.js"),
    ("GET", "/healthz"): _at("/healthz"),
    ("GET", "/readyz"): _at("/readyz"),
    ("GET", "/metrics"): _at("/metrics"),
    ("GET", f"{API}/openapi.json"): _at(f"{API}/openapi.json"),
    ("POST", f"{API}/login"): _sign_in,
    ("GET", f"{API}/sign-in"): _at(f"{API}/sign-in"),
    ("POST", f"{API}/oidc/sign-in"): _at(f"{API}/oidc/sign-in", {}),
    ("GET", CALLBACK): _at(CALLBACK),
    ("POST", f"{API}/logout"): _at(f"{API}/logout"),
    ("GET", f"{API}/session"): _at(f"{API}/session"),
    ("POST", f"{API}/session/confirm"): _at(f"{API}/session/confirm", {"password": PASSWORD}),
    ("POST", f"{API}/password"): _at(
        f"{API}/password", {"current_password": PASSWORD, "new_password": PASSWORD}
    ),
    ("GET", f"{API}/sessions"): _at(f"{API}/sessions"),
    ("DELETE", f"{API}/sessions"): _at(f"{API}/sessions"),
    ("DELETE", f"{API}/sessions/{{session_id}}"): _revoke_session,
    ("GET", f"{API}/editors"): _at(f"{API}/editors"),
    ("GET", f"{API}/tokens"): _at(f"{API}/tokens"),
    ("POST", f"{API}/tokens"): _at(f"{API}/tokens", {"name": "laptop", "expires_in_days": 1}),
    ("DELETE", f"{API}/tokens/{{token_id}}"): _revoke_token,
    ("GET", f"{API}/authenticator"): _at(f"{API}/authenticator"),
    ("POST", f"{API}/authenticator"): _add_authenticator,
    ("POST", f"{API}/authenticator/enable"): _enable_authenticator,
    ("DELETE", f"{API}/authenticator"): _remove_authenticator,
    ("DELETE", f"{ADMIN_USER}/authenticator"): _reset_authenticator,
    ("GET", f"{API}/events"): _at(f"{API}/events"),
    ("GET", f"{API}/workspaces"): _at(f"{API}/workspaces"),
    ("POST", f"{API}/workspaces"): _at(f"{API}/workspaces", {"name": "home", "desired_state": "STANDBY"}),
    ("GET", WORKSPACE): _about_workspace(),
    ("PATCH", WORKSPACE): _about_workspace(body={"name": "renamed", "desired_state": "STANDBY"}),
    ("DELETE", WORKSPACE): _about_workspace("?purge=true"),
    ("POST", f"{WORKSPACE}/recover"): _about_workspace("/recover", {"choice": "retry"}, **IN_ERROR),
    ("POST", f"{WORKSPACE}/undelete"): _about_workspace("/undelete", **BEING_DELETED),
    ("GET", f"{WORKSPACE}/operations"): _about_workspace("/operations"),
    ("GET", f"{WORKSPACE}/operations/{{operation_id}}/steps"): _read_steps,
    ("GET", f"{WORKSPACE}/progress"): _about_workspace("/progress"),
    ("GET", f"{WORKSPACE}/activity"): _about_workspace("/activity"),
    ("GET", f"{WORKSPACE}/events"): _about_workspace("/events"),
    ("GET", f"{WORKSPACE}/archives"): _about_workspace("/archives"),
    ("GET", f"{WORKSPACE}/logs"): _about_workspace("/logs"),
    ("GET", f"{WORKSPACE}/network"): _about_workspace("/network"),
    ("PATCH", f"{WORKSPACE}/network"): _about_workspace("/network", {"mode": "none"}),
    ("GET", f"{WORKSPACE}/network/log"): _about_workspace("/network/log"),
    ("GET", f"{WORKSPACE}/ports"): _about_workspace("/ports"),
    ("PUT", f"{WORKSPACE}/ports/{{port}}/share"): _about_workspace("/ports/3000/share", {}),
    ("DELETE", f"{WORKSPACE}/ports/{{port}}/share"): _about_workspace(
        "/ports/3000/share", port_shares=serialize({3000: PortShare(Audience.USERS, SHARED_AT)})
    ),
    ("GET", f"{API}/admin/users"): _at(f"{API}/admin/users"),
    ("POST", f"{API}/admin/users"): _add_user,
    ("GET", ADMIN_USER): _read_user,
    ("PATCH", ADMIN_USER): _change_user,
    ("GET", f"{API}/admin/workspaces"): _at(f"{API}/admin/workspaces"),
    ("PATCH", ADMIN_NETWORK): _limit_network,
    ("PATCH", ADMIN_DISK): _limit_disk,
    ("GET", f"{API}/admin/phases"): _at(f"{API}/admin/phases"),
    ("GET", f"{API}/admin/errors"): _at(f"{API}/admin/errors"),
    ("POST", f"{API}/admin/errors/recover"): _recover_many,
    ("GET", f"{API}/admin/status"): _at(f"{API}/admin/status"),
    ("GET", f"{API}/admin/audit"): _at(f"{API}/admin/audit"),
    ("GET", f"{API}/admin/audit/export"): _at(f"{API}/admin/audit/export"),
    ("GET", f"{API}/admin/egress"): _at(f"{API}/admin/egress"),
}


@pytest.fixture(scope="module")
async def harness(shared_harness: ApiHarness) -> MatrixHarness:
    roles = {"owner": False, "other": False, "bystander": False, "admin": True, "disabled": True}
    people = {name: await shared_harness.person(admin=admin) for name, admin in roles.items()}
    made = MatrixHarness(
        shared_harness,
        {name: person.user_id for name, person in people.items()},
        {name: person.username for name, person in people.items()},
    )
    # Only the account: the service would revoke the credentials as well.
    disabled = update(User).where(User.id == made.people["disabled"])
    await made._execute(disabled.values(disabled_at=shared_harness.context.now()))
    return made
