"""Every route for every kind of caller: what is allowed follows from the access table alone."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import text, update

from api.access import ACCESS, ADMIN_USER, API, WORKSPACE, Access
from api.csrf import HEADER as CSRF_HEADER
from api.csrf import csrf_token_of
from api.event_stream import EVENT_STREAM
from codehub.db.credentials import SessionView, TokenView, insert_session, insert_token
from codehub.db.models import ApiToken, Session, User
from codehub.services.secret_tokens import hash_token, new_api_token, new_session_token
from tests.api.bench import PASSWORD, ApiBench
from tests.api.shared import shared_bench, shared_environment
from tests.api.streams import status_of_stream
from tests.rows import add_workspace

__all__ = ["shared_bench", "shared_environment"]

Route = tuple[str, str]
UNCHANGED_METHODS = frozenset({"GET"})
STREAMS = frozenset({("GET", f"{API}/events")})
LIFETIME = timedelta(hours=1)
TABLES = text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
LINES = "SELECT '{table}' || (to_jsonb(t) - 'last_used_at' - 'last_seen_at')::text AS line FROM {table} t"


class Kind(StrEnum):
    """Who asks. Those with a dead credential would be administrators, who may do everything, if it lived."""

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
    Access.USER: frozenset(Kind) - STRANGERS,
    Access.OWNER: ADMINS | OWNERS,
    Access.ADMIN: ADMINS,
}
BY_TOKEN = frozenset(
    {Kind.OWNER_TOKEN, Kind.ADMIN_TOKEN, Kind.DISABLED_TOKEN, Kind.EXPIRED_TOKEN, Kind.REVOKED_TOKEN}
)


@dataclass(frozen=True)
class Asker:
    """Somebody with a fresh credential: a request may end it."""

    user_id: UUID
    headers: dict[str, str]
    credential_id: UUID | None = None


@dataclass(frozen=True)
class Sent:
    """One valid request to a route."""

    path: str
    body: dict[str, Any] | None = None


@dataclass
class Stage:
    """The people, made once, and what their requests are about, made anew for each."""

    bench: ApiBench
    people: dict[str, UUID]
    names: dict[str, str]
    client: httpx.AsyncClient = field(init=False)
    statement: str = ""

    def __post_init__(self) -> None:
        self.client = self.bench.stranger()

    async def asker(self, kind: Kind) -> Asker:
        now = self.bench.context.now()
        user_id = self.people[_person_of(kind)]
        if kind is Kind.ANONYMOUS:
            return Asker(user_id, {})
        if kind in BY_TOKEN:
            expires_at = now - LIFETIME if kind is Kind.EXPIRED_TOKEN else now + LIFETIME * 24 * 365
            token_id, token = await self.add_token(user_id, expires_at)
            if kind is Kind.REVOKED_TOKEN:
                await self._execute(update(ApiToken).where(ApiToken.id == token_id).values(revoked_at=now))
            return Asker(user_id, {"Authorization": f"Bearer {token}"}, token_id)
        expires_at = now - LIFETIME if kind is Kind.EXPIRED_SESSION else now + LIFETIME
        session_id, cookie = await self.add_session(user_id, expires_at)
        if kind is Kind.REVOKED_SESSION:
            await self._execute(update(Session).where(Session.id == session_id).values(revoked_at=now))
        headers = {"Cookie": f"codehub_session={cookie}", CSRF_HEADER: csrf_token_of(cookie)}
        return Asker(user_id, headers, session_id)

    async def add_session(self, user_id: UUID, expires_at: datetime) -> tuple[UUID, str]:
        now = self.bench.context.now()
        view, secret = SessionView(uuid4(), now, expires_at, now, None), new_session_token()
        async with self.bench.context.database.transaction() as session:
            await insert_session(session, user_id, view, hash_token(secret))
        return view.id, secret

    async def add_token(self, user_id: UUID, expires_at: datetime) -> tuple[UUID, str]:
        now = self.bench.context.now()
        view, secret = TokenView(uuid4(), "program", now, expires_at, None, None), new_api_token()
        async with self.bench.context.database.transaction() as session:
            await insert_token(session, user_id, view, hash_token(secret))
        return view.id, secret

    async def add_workspace(self, **columns: Any) -> str:  # noqa: ANN401
        async with self.bench.context.database.transaction() as session:
            return await add_workspace(session, self.people["owner"], **columns)

    async def fingerprint(self) -> str:
        """Of everything in the database but the times of last use."""
        async with self.bench.context.database.transaction() as session:
            if not self.statement:
                tables = await session.scalars(TABLES)
                self.statement = " UNION ALL ".join(LINES.format(table=table) for table in sorted(tables))
            digest = text(f"SELECT md5(string_agg(line, '' ORDER BY line)) FROM ({self.statement}) AS lines")  # noqa: S608
            return str(await session.scalar(digest))

    async def send(self, route: Route, asker: Asker, sent: Sent) -> int:
        method, _ = route
        if route in STREAMS:
            return await status_of_stream(self.bench.app, method, sent.path, asker.headers)
        answer = await self.client.request(method, sent.path, json=sent.body, headers=asker.headers)
        # What login sets must not speak for the next caller.
        self.client.cookies.clear()
        return answer.status_code

    async def _execute(self, statement: Any) -> None:  # noqa: ANN401
        async with self.bench.context.database.transaction() as session:
            await session.execute(statement)


def _person_of(kind: Kind) -> str:
    if kind in {Kind.OTHER, Kind.ANONYMOUS}:
        return "other"
    if kind in OWNERS:
        return "owner"
    return "disabled" if kind in {Kind.DISABLED, Kind.DISABLED_TOKEN} else "admin"


Prepare = Callable[[Stage, Asker], Awaitable[Sent]]


def _at(path: str, body: dict[str, Any] | None = None) -> Prepare:
    async def prepare(stage: Stage, asker: Asker) -> Sent:
        return Sent(path, body)

    return prepare


def _about_workspace(
    suffix: str = "",
    body: dict[str, Any] | None = None,
    **columns: Any,  # noqa: ANN401
) -> Prepare:
    async def prepare(stage: Stage, asker: Asker) -> Sent:
        workspace_id = await stage.add_workspace(**columns)
        return Sent(f"{API}/workspaces/{workspace_id}{suffix}", body)

    return prepare


async def _sign_in(stage: Stage, asker: Asker) -> Sent:
    return Sent(f"{API}/login", {"username": stage.names["owner"], "password": PASSWORD})


async def _revoke_session(stage: Stage, asker: Asker) -> Sent:
    session_id, _ = await stage.add_session(asker.user_id, stage.bench.context.now() + LIFETIME)
    return Sent(f"{API}/sessions/{session_id}")


async def _revoke_token(stage: Stage, asker: Asker) -> Sent:
    token_id, _ = await stage.add_token(asker.user_id, stage.bench.context.now() + LIFETIME)
    return Sent(f"{API}/tokens/{token_id}")


async def _add_user(stage: Stage, asker: Asker) -> Sent:
    return Sent(f"{API}/admin/users", {"username": f"new-{uuid4().hex[:12]}", "password": PASSWORD})


async def _read_user(stage: Stage, asker: Asker) -> Sent:
    return Sent(f"{API}/admin/users/{stage.people['bystander']}")


async def _change_user(stage: Stage, asker: Asker) -> Sent:
    # What the caller would need to help itself: only the password's salt differs each time.
    user_id = stage.people["bystander"]
    return Sent(f"{API}/admin/users/{user_id}", {"role": "user", "disabled": False, "password": PASSWORD})


async def _recover_many(stage: Stage, asker: Asker) -> Sent:
    workspace_id = await stage.add_workspace(phase="ERROR", error_reason="Timeout")
    return Sent(f"{API}/admin/errors/recover", {"ids": [workspace_id]})


IN_ERROR: dict[str, Any] = {"phase": "ERROR", "error_reason": "Timeout"}
BEING_DELETED: dict[str, Any] = {
    "phase": "STANDBY",
    "desired_state": "DELETED",
    "deleted_at": datetime.fromisoformat("2026-07-01T12:00:00Z"),
}
REQUESTS: dict[Route, Prepare] = {
    ("GET", "/healthz"): _at("/healthz"),
    ("GET", "/readyz"): _at("/readyz"),
    ("GET", "/metrics"): _at("/metrics"),
    ("GET", f"{API}/openapi.json"): _at(f"{API}/openapi.json"),
    ("POST", f"{API}/login"): _sign_in,
    ("POST", f"{API}/logout"): _at(f"{API}/logout"),
    ("GET", f"{API}/session"): _at(f"{API}/session"),
    ("POST", f"{API}/password"): _at(
        f"{API}/password", {"current_password": PASSWORD, "new_password": PASSWORD}
    ),
    ("GET", f"{API}/sessions"): _at(f"{API}/sessions"),
    ("DELETE", f"{API}/sessions/{{session_id}}"): _revoke_session,
    ("GET", f"{API}/tokens"): _at(f"{API}/tokens"),
    ("POST", f"{API}/tokens"): _at(f"{API}/tokens", {"name": "laptop", "expires_in_days": 1}),
    ("DELETE", f"{API}/tokens/{{token_id}}"): _revoke_token,
    ("GET", f"{API}/events"): _at(f"{API}/events"),
    ("GET", f"{API}/workspaces"): _at(f"{API}/workspaces"),
    ("POST", f"{API}/workspaces"): _at(f"{API}/workspaces", {"name": "home", "desired_state": "STANDBY"}),
    ("GET", WORKSPACE): _about_workspace(),
    ("PATCH", WORKSPACE): _about_workspace(body={"name": "renamed", "desired_state": "STANDBY"}),
    ("DELETE", WORKSPACE): _about_workspace("?purge=true"),
    ("POST", f"{WORKSPACE}/recover"): _about_workspace("/recover", {"choice": "retry"}, **IN_ERROR),
    ("POST", f"{WORKSPACE}/undelete"): _about_workspace("/undelete", **BEING_DELETED),
    ("GET", f"{WORKSPACE}/operations"): _about_workspace("/operations"),
    ("GET", f"{WORKSPACE}/events"): _about_workspace("/events"),
    ("GET", f"{WORKSPACE}/archives"): _about_workspace("/archives"),
    ("GET", f"{WORKSPACE}/logs"): _about_workspace("/logs"),
    ("GET", f"{API}/admin/users"): _at(f"{API}/admin/users"),
    ("POST", f"{API}/admin/users"): _add_user,
    ("GET", ADMIN_USER): _read_user,
    ("PATCH", ADMIN_USER): _change_user,
    ("GET", f"{API}/admin/workspaces"): _at(f"{API}/admin/workspaces"),
    ("GET", f"{API}/admin/phases"): _at(f"{API}/admin/phases"),
    ("GET", f"{API}/admin/errors"): _at(f"{API}/admin/errors"),
    ("POST", f"{API}/admin/errors/recover"): _recover_many,
    ("GET", f"{API}/admin/status"): _at(f"{API}/admin/status"),
}
CASES = [(route, kind) for route in ACCESS for kind in Kind]
# Signing out with a token revokes nothing: the program would be locked out by it.
CHANGES_NOTHING = {(("POST", f"{API}/logout"), kind) for kind in BY_TOKEN}


@pytest.fixture(scope="module")
async def stage(shared_bench: ApiBench) -> Stage:
    roles = {"owner": False, "other": False, "bystander": False, "admin": True, "disabled": True}
    people = {name: await shared_bench.person(admin=admin) for name, admin in roles.items()}
    made = Stage(
        shared_bench,
        {name: person.user_id for name, person in people.items()},
        {name: person.username for name, person in people.items()},
    )
    # Only the account, and not as the service does it: that would revoke the credentials as well.
    disabled = update(User).where(User.id == made.people["disabled"])
    await made._execute(disabled.values(disabled_at=shared_bench.context.now()))
    return made


def _name(case: tuple[Route, Kind]) -> str:
    (method, path), kind = case
    return f"{method} {path} as {kind}"


def test_every_route_of_the_access_table_has_a_request_here() -> None:
    assert set(REQUESTS) == set(ACCESS)


def test_every_route_of_the_application_is_in_the_access_table(shared_bench: ApiBench) -> None:
    served = {
        (method, route.path_format)
        for route in _api_routes(shared_bench.routes.routes)
        for method in route.methods or ()
    }
    assert served == set(ACCESS)


@pytest.mark.parametrize("case", CASES, ids=map(_name, CASES))
async def test_a_route_is_for_those_whom_the_table_names(case: tuple[Route, Kind], stage: Stage) -> None:
    route, kind = case
    asker = await stage.asker(kind)
    sent = await REQUESTS[route](stage, asker)
    changes = route[0] not in UNCHANGED_METHODS
    before = await stage.fingerprint() if changes else None
    status = await stage.send(route, asker, sent)
    after = await stage.fingerprint() if changes else None
    if kind not in ALLOWED[ACCESS[route]]:
        assert status == (401 if kind in STRANGERS else 403)
        assert after == before, "refused, but something has changed"
        return
    assert 200 <= status < 300
    # Otherwise a refused request would prove nothing by changing nothing.
    assert (after != before) == (changes and case not in CHANGES_NOTHING)


WORKSPACE_ROUTES = [route for route, access in ACCESS.items() if access is Access.OWNER]
NO_SUCH_IDS = ["00000000-0000-4000-8000-000000000000", "none-of-ours", "..%2f..", "%00"]


@pytest.mark.parametrize("workspace_id", NO_SUCH_IDS)
@pytest.mark.parametrize("route", WORKSPACE_ROUTES, ids=" ".join)
async def test_a_workspace_that_does_not_exist_is_404_to_users_and_401_to_strangers(
    route: Route, workspace_id: str, stage: Stage
) -> None:
    path = route[1].format(workspace_id=workspace_id)
    assert await stage.send(route, await stage.asker(Kind.ANONYMOUS), Sent(path)) in {401, 404}
    for kind in (Kind.OTHER, Kind.OWNER_TOKEN, Kind.ADMIN):
        assert await stage.send(route, await stage.asker(kind), Sent(path)) == 404


@pytest.mark.parametrize("collection", ["sessions", "tokens"])
@pytest.mark.parametrize("kind", [Kind.OTHER, Kind.ADMIN])
async def test_nobody_else_can_end_a_session_or_token(kind: Kind, collection: str, stage: Stage) -> None:
    lifetime = stage.bench.context.now() + LIFETIME
    add = stage.add_session if collection == "sessions" else stage.add_token
    credential_id, _ = await add(stage.people["owner"], lifetime)
    asker = await stage.asker(kind)
    before = await stage.fingerprint()
    path = f"{API}/{collection}/{credential_id}"
    assert await stage.send(("DELETE", path), asker, Sent(path)) == 404
    assert await stage.fingerprint() == before


@pytest.mark.parametrize("collection", ["workspaces", "sessions", "tokens"])
async def test_a_list_shows_ones_own_only_even_to_an_administrator(collection: str, stage: Stage) -> None:
    now = stage.bench.context.now()
    ids = {
        "workspaces": await stage.add_workspace(),
        "sessions": str((await stage.add_session(stage.people["owner"], now + LIFETIME))[0]),
        "tokens": str((await stage.add_token(stage.people["owner"], now + LIFETIME))[0]),
    }
    shown = {}
    for kind in (Kind.OWNER, Kind.OTHER, Kind.ADMIN):
        asker = await stage.asker(kind)
        path = f"{API}/{collection}" + ("?limit=200" if collection == "workspaces" else "")
        answer = await stage.client.get(path, headers=asker.headers)
        shown[kind] = ids[collection] in {item["id"] for item in answer.json()["items"]}
    assert shown == {Kind.OWNER: True, Kind.OTHER: False, Kind.ADMIN: False}


async def test_a_role_that_was_taken_away_counts_at_once(stage: Stage) -> None:
    asker = await stage.asker(Kind.ADMIN)
    route = ("GET", f"{API}/admin/status")
    assert await stage.send(route, asker, Sent(route[1])) == 200
    for role, status in (("user", 403), ("admin", 200)):
        await stage._execute(update(User).where(User.id == asker.user_id).values(role=role))
        assert await stage.send(route, asker, Sent(route[1])) == status


async def test_a_token_counts_before_a_cookie_and_a_dead_one_is_not_made_up_for(stage: Stage) -> None:
    admin = await stage.asker(Kind.ADMIN)
    for kind, status in ((Kind.OWNER_TOKEN, 403), (Kind.REVOKED_TOKEN, 401)):
        asker = await stage.asker(kind)
        both = Asker(admin.user_id, {**admin.headers, **asker.headers})
        route = ("GET", f"{API}/admin/status")
        assert await stage.send(route, both, Sent(route[1])) == status


async def test_a_stream_of_events_is_one(stage: Stage) -> None:
    asker = await stage.asker(Kind.OWNER)
    seen: dict[str, str] = {}
    await status_of_stream(stage.bench.app, "GET", f"{API}/events", asker.headers, seen)
    assert seen["content-type"].startswith(EVENT_STREAM)


def _api_routes(routes: Any) -> list[APIRoute]:  # noqa: ANN401
    """FastAPI may keep an included router as one route of its own kind."""
    found: list[APIRoute] = []
    for route in routes:
        if isinstance(route, APIRoute):
            found.append(route)
        else:
            router = getattr(route, "original_router", None) or getattr(route, "router", None)
            assert router is not None, route
            found += _api_routes(router.routes)
    return found
