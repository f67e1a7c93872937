"""Every route for every kind of caller: what is allowed follows from the access table alone."""

from typing import Any

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import update

from api.live.response import EVENT_STREAM
from api.security.access import ACCESS, API, Access
from codehub.db.models import User
from tests.api.authorization_cases import (
    ALLOWED,
    BY_TOKEN,
    LIFETIME,
    REQUESTS,
    STRANGERS,
    UNCHANGED_METHODS,
    Asker,
    Kind,
    Route,
    Sent,
    Stage,
    stage,
)
from tests.api.harness import ApiBench
from tests.api.shared import shared_bench, shared_environment
from tests.api.streams import status_of_stream

__all__ = ["shared_bench", "shared_environment", "stage"]

CASES = [(route, kind) for route in ACCESS for kind in Kind]
# Signing out with a token revokes nothing: the program would be locked out by it.
CHANGES_NOTHING = {(("POST", f"{API}/logout"), kind) for kind in BY_TOKEN}


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
    path = route[1].format(workspace_id=workspace_id, operation_id=1)
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
