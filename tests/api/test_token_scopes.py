"""Every route with every kind of token: a token can do no more than its scopes and workspaces allow."""

import re
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update

from api.security.access import (
    ACCESS,
    ANONYMOUS,
    API,
    LIMITED_TOKEN,
    NEEDS_SESSION,
    WORKSPACE,
    Access,
    scope_of,
)
from codehub.db.models import ApiToken
from codehub.domain.scopes import Scope, with_implied
from tests.api.authorization_cases import (
    LIFETIME,
    REQUESTS,
    CallerCredentials,
    MatrixHarness,
    Route,
    Sent,
    harness,
)
from tests.api.harness import ApiHarness

__all__ = ["harness"]

TOKENS = f"{API}/tokens"
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class TokenKind:
    """Whose token it is, what it may do, and whether it is limited to the workspace of the request."""

    owner: str
    scope: Scope
    only: str | None = None


KINDS = [
    TokenKind(owner, scope, only)
    for owner in ("owner", "admin")
    for scope in Scope
    for only in (None, "this", "another")
    if only is None or scope is not Scope.ADMIN
]


async def make(harness: MatrixHarness, kind: TokenKind, route: Route) -> tuple[CallerCredentials, Sent]:
    """Return a token of this kind, and the request that it makes."""
    user_id = harness.people[kind.owner]
    token_id, token = await harness.add_token(user_id, harness.harness.context.now() + LIFETIME)
    caller = CallerCredentials(user_id, {"Authorization": f"Bearer {token}"}, token_id)
    sent = await REQUESTS[route](harness, caller)
    only = None
    if kind.only is not None:
        found = ID.search(sent.path) if "{workspace_id}" in route[1] else None
        only = [UUID(found[0]) if found and kind.only == "this" else uuid4()]
    limits = update(ApiToken).where(ApiToken.id == token_id)
    scopes = sorted(with_implied([kind.scope]))
    await harness._execute(limits.values(scopes=scopes, workspace_ids=only))
    return caller, sent


def is_allowed(route: Route, kind: TokenKind) -> bool:
    access, scope = ACCESS[route], scope_of(route)
    if route in NEEDS_SESSION or (scope is not None and scope not in with_implied([kind.scope])):
        return False
    is_admin = kind.owner == "admin" and kind.scope is Scope.ADMIN
    if access is Access.ADMIN:
        return is_admin
    if access is Access.OWNER_ALONE:
        return kind.owner == "owner" and kind.only != "another"
    if access is Access.OWNER:
        return (kind.owner == "owner" and kind.only != "another") or is_admin
    return kind.only is None or route in LIMITED_TOKEN


@pytest.mark.parametrize(
    "route", [route for route, access in ACCESS.items() if access not in ANONYMOUS], ids=" ".join
)
async def test_a_token_uses_a_route_only_with_its_scope_and_workspace(
    route: Route, harness: MatrixHarness
) -> None:
    prepared = [(kind, await make(harness, kind, route)) for kind in KINDS]
    before = await harness.fingerprint()
    refused = [(kind, made) for kind, made in prepared if not is_allowed(route, kind)]
    for kind, (caller, sent) in refused:
        assert await harness.send(route, caller, sent) == 403, kind
    assert await harness.fingerprint() == before, "refused, but something has changed"
    for kind, (caller, sent) in prepared:
        if is_allowed(route, kind):
            assert 200 <= await harness.send(route, caller, sent) < 300, kind


@pytest.mark.parametrize(
    ("route", "scope"),
    [
        (("GET", f"{API}/workspaces"), Scope.READ),
        (("GET", f"{WORKSPACE}/logs"), Scope.READ),
        (("POST", f"{API}/workspaces"), Scope.WORKSPACES),
        (("DELETE", WORKSPACE), Scope.WORKSPACES),
        (("DELETE", f"{API}/tokens/{{token_id}}"), Scope.WORKSPACES),
        (("GET", f"{API}/admin/users"), Scope.ADMIN),
        (("POST", f"{API}/admin/errors/recover"), Scope.ADMIN),
        (("GET", f"{API}/session"), None),
    ],
)
def test_examples_of_scopes(route: Route, scope: Scope | None) -> None:
    assert scope_of(route) == scope


async def test_a_limited_token_lists_only_its_workspaces(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    mine, _other = await ada.create(name="mine"), await ada.create(name="other")
    program, _ = await shared_harness.token_client(ada, workspaces=[mine["id"]])
    listed = (await program.get(ada.workspaces)).json()["items"]
    assert [each["id"] for each in listed] == [mine["id"]]
    (token,) = (await ada.client.get(TOKENS)).json()["items"]
    assert (token["scopes"], token["workspaces"]) == (["read", "workspaces"], [mine["id"]])


async def test_a_token_of_an_older_release_is_shown_as_one_that_may_do_everything(
    shared_harness: ApiHarness,
) -> None:
    admin = await shared_harness.person(admin=True)
    program, token_id = await shared_harness.token_client(admin, scopes=["read"])
    assert (await program.get(f"{API}/admin/users")).status_code == 403
    async with shared_harness.context.database.transaction() as session:
        older = update(ApiToken).where(ApiToken.id == UUID(token_id))
        await session.execute(older.values(scopes=None))
    assert (await program.get(f"{API}/admin/users")).status_code == 200
    (token,) = (await admin.client.get(TOKENS)).json()["items"]
    assert (token["scopes"], token["workspaces"]) == (None, None)


async def test_a_token_is_refused_scopes_and_workspaces_that_its_owner_does_not_have(
    shared_harness: ApiHarness,
) -> None:
    ada, bob = await shared_harness.person(), await shared_harness.person()
    admin = await shared_harness.person(admin=True)
    workspace_id = (await bob.create())["id"]
    for person, form, status in (
        (ada, {"scopes": ["admin"]}, 400),
        (ada, {"scopes": []}, 400),
        (ada, {"workspaces": []}, 400),
        (ada, {"workspaces": [workspace_id]}, 404),
        (admin, {"workspaces": [workspace_id]}, 404),
        (bob, {"workspaces": [workspace_id]}, 201),
        (admin, {"scopes": ["admin"]}, 201),
        (admin, {"scopes": ["admin"], "workspaces": [workspace_id]}, 400),
    ):
        response = await person.client.post(TOKENS, json={"name": "program", **form})
        assert response.status_code == status, (form, response.text)
