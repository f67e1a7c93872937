"""A stolen cookie, or a page in a workspace, cannot make itself a token or an account."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update

from api.security.access import API, NEEDS_PASSWORD, NEEDS_SESSION
from codehub.db.models import Session
from codehub.domain.lockout import FAILURES_BEFORE_LOCK
from tests.api.authorization_cases import REQUESTS, Kind, MatrixHarness, Route, harness
from tests.api.harness import PASSWORD, ApiHarness

__all__ = ["harness"]

CONFIRM = f"{API}/session/confirm"
TOKENS = f"{API}/tokens"
AGAIN = "REAUTHENTICATION_REQUIRED"


async def age(harness: ApiHarness, user_id: UUID, by: timedelta | None = None) -> None:
    """Let the sessions of the user be so old; by default just older than the window."""
    window = harness.context.options.confirm_window
    then = harness.context.now() - (by or window + timedelta(seconds=1))
    async with harness.context.database.transaction() as session:
        statement = update(Session).where(Session.user_id == user_id)
        await session.execute(statement.values(created_at=then, confirmed_at=None))


@pytest.mark.parametrize("route", sorted(NEEDS_PASSWORD), ids=" ".join)
async def test_a_session_needs_the_password_again_after_a_while(route: Route, harness: MatrixHarness) -> None:
    caller = await harness.caller(Kind.ADMIN)
    sent = await REQUESTS[route](harness, caller)
    await age(harness.harness, caller.user_id)
    before = await harness.fingerprint()
    response = await harness.client.request(route[0], sent.path, json=sent.body, headers=caller.headers)
    assert (response.status_code, response.json()["error"]["code"]) == (403, AGAIN)
    assert await harness.fingerprint() == before
    confirmed = await harness.client.post(CONFIRM, json={"password": PASSWORD}, headers=caller.headers)
    assert confirmed.status_code == 204
    assert 200 <= await harness.send(route, caller, sent) < 300


async def test_an_administrator_changes_the_workspaces_of_others_only_with_the_password(
    shared_harness: ApiHarness,
) -> None:
    admin, ada = await shared_harness.person(admin=True), await shared_harness.person()
    theirs = f"{API}/workspaces/{(await ada.create())['id']}"
    own = f"{API}/workspaces/{(await admin.create())['id']}"
    await age(shared_harness, admin.user_id)
    for refused in (
        await admin.client.patch(theirs, json={"memo": "changed"}),
        await admin.client.delete(theirs, params={"purge": True}),
    ):
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, AGAIN)
    assert (await admin.client.get(theirs)).status_code == 200
    assert (await admin.client.patch(own, json={"memo": "changed"})).status_code == 200
    assert (await admin.client.post(CONFIRM, json={"password": PASSWORD})).status_code == 204
    assert (await admin.client.patch(theirs, json={"memo": "changed"})).status_code == 200


@pytest.mark.parametrize("route", sorted(NEEDS_SESSION), ids=" ".join)
async def test_a_token_cannot_do_what_only_a_password_allows(route: Route, harness: MatrixHarness) -> None:
    caller = await harness.caller(Kind.ADMIN_TOKEN)
    sent = await REQUESTS[route](harness, caller)
    response = await harness.client.request(route[0], sent.path, json=sent.body, headers=caller.headers)
    assert (response.status_code, response.json()["error"]["code"]) == (403, AGAIN)


async def test_a_wrong_password_confirms_nothing_and_cannot_be_guessed(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    await age(shared_harness, ada.user_id)
    wrong = {"password": "wrong horse"}
    for _ in range(FAILURES_BEFORE_LOCK):
        response = await ada.client.post(CONFIRM, json=wrong)
        assert (response.status_code, response.json()["error"]["code"]) == (403, "WRONG_PASSWORD")
    assert (await ada.client.post(CONFIRM, json={"password": PASSWORD})).status_code == 429
    assert (await ada.client.post(TOKENS, json={"name": "laptop"})).json()["error"]["code"] == AGAIN


async def test_confirming_one_session_does_not_confirm_another(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    stolen = shared_harness.stranger()
    await shared_harness.sign_in(stolen, ada.username)
    await age(shared_harness, ada.user_id)
    assert (await ada.client.post(CONFIRM, json={"password": PASSWORD})).status_code == 204
    assert (await ada.client.post(TOKENS, json={"name": "laptop"})).status_code == 201
    assert (await stolen.post(TOKENS, json={"name": "thief"})).status_code == 403


@pytest.mark.parametrize("tokens", [False, True])
async def test_sign_out_everywhere(shared_harness: ApiHarness, *, tokens: bool) -> None:
    ada = await shared_harness.person()
    elsewhere = shared_harness.stranger()
    await shared_harness.sign_in(elsewhere, ada.username)
    program, _ = await shared_harness.token_client(ada)
    bystander = await shared_harness.person()
    response = await ada.client.delete(f"{API}/sessions", params={"tokens": tokens})
    assert response.status_code == 204
    for client, status in ((ada.client, 401), (elsewhere, 401), (program, 401 if tokens else 200)):
        assert (await client.get(f"{API}/session")).status_code == status
    assert (await bystander.client.get(f"{API}/session")).status_code == 200
