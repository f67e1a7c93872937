"""Sign-in, sign-out, sessions, passwords and tokens over the API."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import text, update

from api.app import create_app
from api.security.access import API
from api.security.csrf import CSRF_HEADER
from codehub.db.models import ApiToken
from codehub.domain.lockout import FAILURES_BEFORE_LOCK
from codehub.services.users import disable_user
from testkit.rows import BY
from tests.api.harness import ORIGIN, PASSWORD, ApiHarness, open_harness

LOGIN = f"{API}/login"
SESSION = f"{API}/session"
SESSIONS = f"{API}/sessions"
TOKENS = f"{API}/tokens"
# With the same id, equal responses are equal byte by byte.
SAME_REQUEST = {"X-Request-ID": "the-same-request"}
COOKIE = "codehub_session"


def _form(username: str, password: str = "wrong horse") -> dict[str, str]:  # noqa: S107
    return {"username": username, "password": password}


def _visible(response: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """Return everything but the time by which a client could tell two responses apart."""
    return response.status_code, response.content, dict(response.headers)


async def _wrong(harness: ApiHarness, username: str, password: str = "wrong horse") -> httpx.Response:  # noqa: S107
    return await harness.stranger(**SAME_REQUEST).post(LOGIN, json=_form(username, password))


async def test_signing_in_returns_the_user_and_sets_a_cookie(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person("ada-of-sign-in")
    client = shared_harness.stranger()
    response = await client.post(LOGIN, json=_form("ADA-of-sign-in", PASSWORD))
    shown = response.json()
    assert shown["user"] == {"id": str(ada.user_id), "username": "ada-of-sign-in", "role": "user"}
    assert shown["credential"] == "session"
    assert client.cookies[COOKIE] not in response.text
    assert (await client.get(SESSION)).json() == shown


async def test_unknown_user_wrong_password_and_disabled_user_get_the_same_response(
    shared_harness: ApiHarness,
) -> None:
    ada, grace = await shared_harness.person(), await shared_harness.person()
    await disable_user(
        shared_harness.context.database, grace.user_id, by=BY, now=shared_harness.context.now()
    )
    wrong_password = _visible(await _wrong(shared_harness, ada.username))
    assert wrong_password[0] == 401
    assert wrong_password == _visible(await _wrong(shared_harness, "nobody-of-that-name"))
    assert wrong_password == _visible(await _wrong(shared_harness, grace.username, PASSWORD))


async def test_repeated_failures_lock_existing_and_unknown_usernames_alike(
    shared_harness: ApiHarness,
) -> None:
    ada = await shared_harness.person()
    shown = []
    for username in (ada.username, "nobody-at-all"):
        refused = [await _wrong(shared_harness, username) for _ in range(FAILURES_BEFORE_LOCK)]
        assert {response.status_code for response in refused} == {401}
        # The right password is refused too.
        locked = await _wrong(shared_harness, username, PASSWORD)
        assert (locked.status_code, locked.json()["error"]["code"]) == (429, "TOO_MANY_REQUESTS")
        assert 0 < int(locked.headers["retry-after"]) <= 30
        assert locked.json()["error"]["retry_after_seconds"] == int(locked.headers["retry-after"])
        shown.append(set(locked.headers) | set(locked.json()["error"]))
    assert shown[0] == shown[1]
    # Open sessions stay valid: otherwise anyone could sign anyone out.
    assert (await ada.client.get(SESSION)).status_code == 200


async def test_signing_out_ends_only_this_session(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    elsewhere = shared_harness.stranger()
    await shared_harness.sign_in(elsewhere, ada.username)
    kept = ada.client.cookies[COOKIE]
    response = await ada.client.post(f"{API}/logout")
    assert (response.status_code, response.content) == (204, b"")
    assert COOKIE not in ada.client.cookies
    # A copy of the cookie is useless.
    copied = await shared_harness.stranger().get(SESSION, headers={"Cookie": f"{COOKIE}={kept}"})
    assert copied.status_code == 401
    assert (await elsewhere.get(SESSION)).status_code == 200


async def test_a_user_can_list_and_end_their_other_sessions(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    elsewhere = shared_harness.stranger(**{"User-Agent": "a" * 5_000})
    await shared_harness.sign_in(elsewhere, ada.username)
    items = (await ada.client.get(SESSIONS)).json()["items"]
    assert [item["current"] for item in items] == [False, True]
    assert len(items[0]["user_agent"]) <= 512
    ended = await ada.client.delete(f"{SESSIONS}/{items[0]['id']}")
    assert ended.status_code == 204
    assert (await elsewhere.get(SESSION)).status_code == 401
    assert (await ada.client.delete(f"{SESSIONS}/{items[0]['id']}")).status_code == 404
    assert len((await ada.client.get(SESSIONS)).json()["items"]) == 1


async def test_only_the_sign_in_response_contains_the_cookie(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    for path in (SESSION, SESSIONS, TOKENS):
        response = await ada.client.get(path)
        assert ada.client.cookies[COOKIE] not in response.text
        assert "set-cookie" not in response.headers


async def test_a_new_password_ends_the_other_sessions_and_all_tokens(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    elsewhere = shared_harness.stranger()
    await shared_harness.sign_in(elsewhere, ada.username)
    program, _ = await shared_harness.token_client(ada)
    form = {"current_password": PASSWORD, "new_password": "a new battery"}
    assert (await ada.client.post(f"{API}/password", json=form)).status_code == 204
    assert (await elsewhere.get(SESSION)).status_code == 401
    assert (await ada.client.get(SESSION)).status_code == 200
    assert (await program.get(SESSION)).status_code == 401
    assert (await _wrong(shared_harness, ada.username, PASSWORD)).status_code == 401
    assert (await _wrong(shared_harness, ada.username, "a new battery")).status_code == 200


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"current_password": "wrong horse", "new_password": "a new battery"}, 403),
        ({"current_password": PASSWORD, "new_password": "short"}, 400),
    ],
)
async def test_a_refused_password_change_leaves_the_old_password(
    form: dict[str, str], status: int, shared_harness: ApiHarness
) -> None:
    ada = await shared_harness.person()
    response = await ada.client.post(f"{API}/password", json=form)
    assert response.status_code == status
    assert (await ada.client.get(SESSION)).status_code == 200
    assert (await _wrong(shared_harness, ada.username, PASSWORD)).status_code == 200


async def test_a_stolen_session_cannot_guess_passwords_forever(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    form = {"current_password": "wrong horse", "new_password": "a new battery"}
    statuses = [
        (await ada.client.post(f"{API}/password", json=form)).status_code
        for _ in range(FAILURES_BEFORE_LOCK + 1)
    ]
    assert statuses == [403] * FAILURES_BEFORE_LOCK + [429]


async def test_a_token_is_shown_once_and_stored_nowhere(
    shared_harness: ApiHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = await shared_harness.person()
    created = (await ada.client.post(TOKENS, json={"name": "laptop"})).json()
    secret = created["token"]
    assert secret.startswith("codehub_pat_")
    program = shared_harness.stranger(authorization=f"Bearer {secret}")
    assert (await program.get(SESSION)).json()["credential"] == "token"
    listed = await ada.client.get(TOKENS)
    (item,) = listed.json()["items"]
    assert item | {"last_used_at": None} == {key: created[key] for key in created if key != "token"}
    assert item["last_used_at"] is not None
    for response in (listed, await ada.client.get(SESSION), await program.get(TOKENS)):
        assert secret not in response.text
    async with shared_harness.context.database.transaction() as session:
        rows = (await session.scalars(text("SELECT to_jsonb(t)::text FROM api_tokens t"))).all()
    unprefixed = secret.removeprefix("codehub_pat_")
    assert not [row for row in rows if unprefixed in row]
    assert unprefixed not in caplog.text


async def test_no_secret_is_logged(shared_harness: ApiHarness, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ada = await shared_harness.person()
    await _wrong(shared_harness, ada.username, "a password of mine by mistake")
    await ada.client.post(
        f"{API}/password", json={"current_password": PASSWORD, "new_password": "a new battery"}
    )
    assert "POST /api/v1/login 401" in caplog.text
    for secret in (
        PASSWORD,
        "a password of mine by mistake",
        "a new battery",
        ada.client.cookies[COOKIE],
        ada.client.headers[CSRF_HEADER],
    ):
        assert secret not in caplog.text


async def test_a_revoked_token_stops_working_at_once(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    program, token_id = await shared_harness.token_client(ada)
    assert (await program.delete(f"{TOKENS}/{token_id}")).status_code == 204
    assert (await program.get(SESSION)).status_code == 401
    assert (await ada.client.delete(f"{TOKENS}/{token_id}")).status_code == 404
    assert (await ada.client.get(TOKENS)).json()["items"] == []


async def test_signing_out_with_a_token_revokes_nothing(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    program, _ = await shared_harness.token_client(ada)
    assert (await program.post(f"{API}/logout")).status_code == 204
    assert (await program.get(SESSION)).status_code == 200
    assert (await ada.client.get(SESSION)).status_code == 200


async def _expire(harness: ApiHarness, token_id: str, left: timedelta) -> None:
    async with harness.context.database.transaction() as session:
        statement = update(ApiToken).where(ApiToken.id == token_id)
        await session.execute(statement.values(expires_at=harness.context.now() + left))


async def test_a_token_without_expiry_can_be_requested(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    for form, expires in (({}, True), ({"expires_in_days": None}, False)):
        created = (await ada.client.post(TOKENS, json={"name": "laptop", **form})).json()
        assert (created["expires_at"] is not None) == expires


async def test_a_token_stops_working_when_it_expires(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    program, token_id = await shared_harness.token_client(ada)
    await _expire(shared_harness, token_id, timedelta(seconds=-1))
    assert (await program.get(SESSION)).status_code == 401
    # Its owner can see why.
    assert len((await ada.client.get(TOKENS)).json()["items"]) == 1


async def test_a_password_that_an_administrator_sets_ends_all_sessions_and_tokens(
    shared_harness: ApiHarness,
) -> None:
    admin, ada = await shared_harness.person(admin=True), await shared_harness.person()
    program, _ = await shared_harness.token_client(ada)
    account = f"{API}/admin/users/{ada.user_id}"
    assert (await admin.client.patch(account, json={"password": "a new battery"})).status_code == 200
    for client in (ada.client, program):
        assert (await client.get(SESSION)).status_code == 401


async def test_disabling_an_account_ends_its_credentials_for_good(
    shared_harness: ApiHarness,
) -> None:
    admin, ada = await shared_harness.person(admin=True), await shared_harness.person()
    program, _ = await shared_harness.token_client(ada)
    account = f"{API}/admin/users/{ada.user_id}"
    assert (await admin.client.patch(account, json={"disabled": True})).json()["disabled_at"] is not None
    assert (await admin.client.patch(account, json={"disabled": False})).json()["disabled_at"] is None
    for client in (ada.client, program):
        assert (await client.get(SESSION)).status_code == 401


async def test_a_change_of_an_account_is_all_or_nothing(shared_harness: ApiHarness) -> None:
    admin, ada = await shared_harness.person(admin=True), await shared_harness.person()
    account = f"{API}/admin/users/{ada.user_id}"
    before = (await admin.client.get(account)).json()
    form = {"role": "admin", "disabled": True, "password": "short"}
    assert (await admin.client.patch(account, json=form)).status_code == 400
    assert (await admin.client.get(account)).json() == before
    assert (await ada.client.get(SESSION)).status_code == 200


@pytest.fixture
async def slow_harness(shared_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    """An API that allows one request a second, bursts of four, and three sign-ins a minute."""
    limits = {"CODEHUB_API_REQUESTS_PER_SECOND": "1", "CODEHUB_API_SIGN_INS_PER_MINUTE": "3"}
    async with open_harness(shared_environment | limits) as opened:
        yield opened


async def _burst(client: httpx.AsyncClient, path: str, count: int) -> list[httpx.Response]:
    return list(await asyncio.gather(*(client.get(path) for _ in range(count))))


def _assert_slowed_down(responses: list[httpx.Response], usual: int) -> None:
    assert {response.status_code for response in responses} == {usual, 429}
    for response in responses:
        if response.status_code == 429:
            assert response.json()["error"]["code"] == "TOO_MANY_REQUESTS"
            assert int(response.headers["retry-after"]) >= 1


async def test_only_the_user_who_is_too_fast_is_slowed_down(slow_harness: ApiHarness) -> None:
    ada, grace = await slow_harness.person(), await slow_harness.person()
    _assert_slowed_down(await _burst(ada.client, SESSION, 40), 200)
    # Another browser of the same user counts as the same caller; another user does not.
    assert (await grace.client.get(SESSION)).status_code == 200


async def test_anonymous_requests_are_limited_by_address_without_slowing_down_users(
    slow_harness: ApiHarness,
) -> None:
    ada = await slow_harness.person()
    _assert_slowed_down(await _burst(slow_harness.stranger(), SESSION, 120), 401)
    assert (await ada.client.get(SESSION)).status_code == 200


async def test_health_checks_are_not_limited(slow_harness: ApiHarness) -> None:
    responses = await _burst(slow_harness.stranger(), "/healthz", 60)
    assert {response.status_code for response in responses} == {200}


async def test_sign_ins_are_limited_by_address_for_any_username(
    slow_harness: ApiHarness,
) -> None:
    client = slow_harness.stranger()
    forms = [_form(f"nobody-{number}") for number in range(8)]
    responses = list(await asyncio.gather(*(client.post(LOGIN, json=form) for form in forms)))
    _assert_slowed_down(responses, 401)


async def test_sign_ins_from_one_ipv6_network_are_limited_together(slow_harness: ApiHarness) -> None:
    app = create_app(slow_harness.context)

    async def sign_in(number: int) -> httpx.Response:
        transport = httpx.ASGITransport(app=app, client=(f"2001:db8::{number}", 1))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            return await client.post(LOGIN, json=_form(f"nobody-{number}"))

    _assert_slowed_down([await sign_in(number) for number in range(1, 9)], 401)
