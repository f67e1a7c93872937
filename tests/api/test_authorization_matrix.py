"""Every route with every kind of caller: only the access table decides what is allowed."""

from typing import Any

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import update

from api.live.client import EVENT_STREAM
from api.security.access import ACCESS, API, CALLBACK, NEEDS_SESSION, OF_WORKSPACE
from codehub.db.models import User
from tests.api.authorization_cases import (
    ALLOWED,
    BY_TOKEN,
    LIFETIME,
    REQUESTS,
    STRANGERS,
    UNCHANGED_METHODS,
    CallerCredentials,
    Kind,
    MatrixHarness,
    Route,
    Sent,
    harness,
)
from tests.api.harness import ApiHarness
from tests.api.stream_requests import status_of_stream

__all__ = ["harness"]

CASES = [(route, kind) for route in ACCESS for kind in Kind]
# Signing out with a token must not revoke it: that would lock the program out.
CHANGES_NOTHING = {(("POST", f"{API}/logout"), kind) for kind in BY_TOKEN}

# This API has no identity provider; test_oidc.py tries them with one.
NEED_PROVIDER = {("POST", f"{API}/oidc/sign-in"), ("GET", CALLBACK)}


def _name(case: tuple[Route, Kind]) -> str:
    (method, path), kind = case
    return f"{method} {path} as {kind}"


def test_every_route_of_the_access_table_has_a_request_here() -> None:
    assert set(REQUESTS) == set(ACCESS)


def test_every_route_of_the_application_is_in_the_access_table(shared_harness: ApiHarness) -> None:
    served = {
        (method, route.path_format)
        for route in _api_routes(shared_harness.routes.routes)
        for method in route.methods or ()
    }
    assert served == set(ACCESS)


@pytest.mark.parametrize("case", CASES, ids=map(_name, CASES))
async def test_a_route_admits_exactly_the_callers_in_the_access_table(
    case: tuple[Route, Kind], harness: MatrixHarness
) -> None:
    route, kind = case
    caller = await harness.caller(kind)
    sent = await REQUESTS[route](harness, caller)
    changes = route[0] not in UNCHANGED_METHODS
    before = await harness.fingerprint() if changes else None
    status = await harness.send(route, caller, sent)
    after = await harness.fingerprint() if changes else None
    if route in NEED_PROVIDER:
        assert (status, after) == (404, before)
        return
    if kind not in ALLOWED[ACCESS[route]] or (kind in BY_TOKEN and route in NEEDS_SESSION):
        assert status == (401 if kind in STRANGERS else 403)
        assert after == before, "refused, but something has changed"
        return
    assert 200 <= status < 300
    # An allowed request must change something, or the check of refused requests would prove nothing.
    assert (after != before) == (changes and case not in CHANGES_NOTHING)


WORKSPACE_ROUTES = [route for route, access in ACCESS.items() if access in OF_WORKSPACE]
NO_SUCH_IDS = ["00000000-0000-4000-8000-000000000000", "none-of-ours", "..%2f..", "%00"]


@pytest.mark.parametrize("workspace_id", NO_SUCH_IDS)
@pytest.mark.parametrize("route", WORKSPACE_ROUTES, ids=" ".join)
async def test_an_unknown_workspace_is_404_for_users_and_401_for_anonymous_callers(
    route: Route, workspace_id: str, harness: MatrixHarness
) -> None:
    path = route[1].format(workspace_id=workspace_id, operation_id=1, port=3000)
    assert await harness.send(route, await harness.caller(Kind.ANONYMOUS), Sent(path)) in {401, 404}
    for kind in (Kind.OTHER, Kind.OWNER_TOKEN, Kind.ADMIN):
        assert await harness.send(route, await harness.caller(kind), Sent(path)) == 404


@pytest.mark.parametrize("collection", ["sessions", "tokens"])
@pytest.mark.parametrize("kind", [Kind.OTHER, Kind.ADMIN])
async def test_only_their_owner_can_end_a_session_or_token(
    kind: Kind, collection: str, harness: MatrixHarness
) -> None:
    lifetime = harness.harness.context.now() + LIFETIME
    add = harness.add_session if collection == "sessions" else harness.add_token
    credential_id, _ = await add(harness.people["owner"], lifetime)
    caller = await harness.caller(kind)
    before = await harness.fingerprint()
    path = f"{API}/{collection}/{credential_id}"
    assert await harness.send(("DELETE", path), caller, Sent(path)) == 404
    assert await harness.fingerprint() == before


@pytest.mark.parametrize("collection", ["workspaces", "sessions", "tokens"])
async def test_a_list_shows_only_the_callers_own_workspaces_even_to_an_administrator(
    collection: str, harness: MatrixHarness
) -> None:
    now = harness.harness.context.now()
    ids = {
        "workspaces": await harness.add_workspace(),
        "sessions": str((await harness.add_session(harness.people["owner"], now + LIFETIME))[0]),
        "tokens": str((await harness.add_token(harness.people["owner"], now + LIFETIME))[0]),
    }
    shown = {}
    for kind in (Kind.OWNER, Kind.OTHER, Kind.ADMIN):
        caller = await harness.caller(kind)
        path = f"{API}/{collection}" + ("?limit=200" if collection == "workspaces" else "")
        response = await harness.client.get(path, headers=caller.headers)
        shown[kind] = ids[collection] in {item["id"] for item in response.json()["items"]}
    assert shown == {Kind.OWNER: True, Kind.OTHER: False, Kind.ADMIN: False}


async def test_a_change_of_role_takes_effect_at_once(harness: MatrixHarness) -> None:
    caller = await harness.caller(Kind.ADMIN)
    route = ("GET", f"{API}/admin/status")
    assert await harness.send(route, caller, Sent(route[1])) == 200
    for role, status in (("user", 403), ("admin", 200)):
        await harness._execute(update(User).where(User.id == caller.user_id).values(role=role))
        assert await harness.send(route, caller, Sent(route[1])) == status


async def test_a_token_takes_precedence_over_a_cookie_even_if_it_is_invalid(
    harness: MatrixHarness,
) -> None:
    admin = await harness.caller(Kind.ADMIN)
    for kind, status in ((Kind.OWNER_TOKEN, 403), (Kind.REVOKED_TOKEN, 401)):
        caller = await harness.caller(kind)
        both = CallerCredentials(admin.user_id, {**admin.headers, **caller.headers})
        route = ("GET", f"{API}/admin/status")
        assert await harness.send(route, both, Sent(route[1])) == status


async def test_live_events_are_an_event_stream(harness: MatrixHarness) -> None:
    caller = await harness.caller(Kind.OWNER)
    seen: dict[str, str] = {}
    await status_of_stream(harness.harness.app, "GET", f"{API}/events", caller.headers, seen)
    assert seen["content-type"].startswith(EVENT_STREAM)


def _api_routes(routes: Any) -> list[APIRoute]:  # noqa: ANN401
    """Flatten the routes: FastAPI may keep an included router as one route."""
    found: list[APIRoute] = []
    for route in routes:
        if isinstance(route, APIRoute):
            found.append(route)
        else:
            router = getattr(route, "original_router", None) or getattr(route, "router", None)
            assert router is not None, route
            found += _api_routes(router.routes)
    return found
