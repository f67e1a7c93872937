"""Signing in and out, sessions, passwords and tokens over HTTP."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import httpx
import pytest
from sqlalchemy import text, update

from api.security.access import API
from api.security.csrf import CSRF_HEADER
from codehub.db.models import ApiToken
from codehub.domain.lockout import FAILURES_BEFORE_LOCK
from codehub.services.users import disable_user
from tests.api.harness import PASSWORD, ApiHarness, open_harness
from tests.api.module_fixtures import shared_environment, shared_harness

__all__ = ["shared_environment", "shared_harness"]

LOGIN = f"{API}/login"
SESSION = f"{API}/session"
SESSIONS = f"{API}/sessions"
TOKENS = f"{API}/tokens"
# With the same id, answers that should be the same are so byte by byte.
SAME_REQUEST = {"X-Request-ID": "the-same-request"}
COOKIE = "codehub_session"


def _form(username: str, password: str = "wrong horse") -> dict[str, str]:  # noqa: S107
    return {"username": username, "password": password}


def _told(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """Everything that a stranger can tell two answers apart by, but for the time."""
    return answer.status_code, answer.content, dict(answer.headers)


async def _wrong(harness: ApiHarness, username: str, password: str = "wrong horse") -> httpx.Response:  # noqa: S107
    return await harness.stranger(**SAME_REQUEST).post(LOGIN, json=_form(username, password))


async def test_signing_in_tells_who_one_is_and_sets_a_cookie(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person("ada-of-sign-in")
    client = shared_harness.stranger()
    answer = await client.post(LOGIN, json=_form("ADA-of-sign-in", PASSWORD))
    told = answer.json()
    assert told["user"] == {"id": str(ada.user_id), "username": "ada-of-sign-in", "role": "user"}
    assert told["credential"] == "session"
    assert client.cookies[COOKIE] not in answer.text
    assert (await client.get(SESSION)).json() == told


async def test_a_wrong_name_and_a_wrong_password_and_a_disabled_user_are_told_alike(
    shared_harness: ApiHarness,
) -> None:
    ada, grace = await shared_harness.person(), await shared_harness.person()
    await disable_user(shared_harness.context.database, grace.user_id, now=shared_harness.context.now())
    wrong_password = _told(await _wrong(shared_harness, ada.username))
    assert wrong_password[0] == 401
    assert wrong_password == _told(await _wrong(shared_harness, "nobody-of-that-name"))
    assert wrong_password == _told(await _wrong(shared_harness, grace.username, PASSWORD))


async def test_after_some_failures_neither_a_real_nor_an_unreal_name_can_be_tried(
    shared_harness: ApiHarness,
) -> None:
    ada = await shared_harness.person()
    told = []
    for username in (ada.username, "nobody-at-all"):
        refused = [await _wrong(shared_harness, username) for _ in range(FAILURES_BEFORE_LOCK)]
        assert {answer.status_code for answer in refused} == {401}
        # The right password is not looked at either.
        locked = await _wrong(shared_harness, username, PASSWORD)
        assert (locked.status_code, locked.json()["error"]["code"]) == (429, "TOO_MANY_REQUESTS")
        assert 0 < int(locked.headers["retry-after"]) <= 30
        assert locked.json()["error"]["retry_after_seconds"] == int(locked.headers["retry-after"])
        told.append(set(locked.headers) | set(locked.json()["error"]))
    assert told[0] == told[1]
    # Who is signed in already stays so: otherwise anybody could throw anybody out.
    assert (await ada.client.get(SESSION)).status_code == 200


async def test_signing_out_ends_this_session_and_no_other(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    elsewhere = shared_harness.stranger()
    await shared_harness.sign_in(elsewhere, ada.username)
    kept = ada.client.cookies[COOKIE]
    answer = await ada.client.post(f"{API}/logout")
    assert (answer.status_code, answer.content) == (204, b"")
    assert COOKIE not in ada.client.cookies
    # Whoever has copied the cookie has nothing.
    copied = await shared_harness.stranger().get(SESSION, headers={"Cookie": f"{COOKIE}={kept}"})
    assert copied.status_code == 401
    assert (await elsewhere.get(SESSION)).status_code == 200


async def test_one_sees_and_ends_ones_other_sessions(shared_harness: ApiHarness) -> None:
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


async def test_no_answer_but_the_sign_in_has_the_cookie_in_it(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    for path in (SESSION, SESSIONS, TOKENS):
        answer = await ada.client.get(path)
        assert ada.client.cookies[COOKIE] not in answer.text
        assert "set-cookie" not in answer.headers


async def test_a_new_password_ends_the_other_sessions_but_not_this_one(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    elsewhere = shared_harness.stranger()
    await shared_harness.sign_in(elsewhere, ada.username)
    program, _ = await shared_harness.token_client(ada)
    form = {"current_password": PASSWORD, "new_password": "a new battery"}
    assert (await ada.client.post(f"{API}/password", json=form)).status_code == 204
    assert (await elsewhere.get(SESSION)).status_code == 401
    assert (await ada.client.get(SESSION)).status_code == 200
    assert (await program.get(SESSION)).status_code == 200
    assert (await _wrong(shared_harness, ada.username, PASSWORD)).status_code == 401
    assert (await _wrong(shared_harness, ada.username, "a new battery")).status_code == 200


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"current_password": "wrong horse", "new_password": "a new battery"}, 401),
        ({"current_password": PASSWORD, "new_password": "short"}, 400),
    ],
)
async def test_a_password_that_cannot_be_changed_stays(
    form: dict[str, str], status: int, shared_harness: ApiHarness
) -> None:
    ada = await shared_harness.person()
    answer = await ada.client.post(f"{API}/password", json=form)
    assert answer.status_code == status
    assert (await ada.client.get(SESSION)).status_code == 200
    assert (await _wrong(shared_harness, ada.username, PASSWORD)).status_code == 200


async def test_a_stolen_session_cannot_try_out_passwords_for_ever(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    form = {"current_password": "wrong horse", "new_password": "a new battery"}
    statuses = [
        (await ada.client.post(f"{API}/password", json=form)).status_code
        for _ in range(FAILURES_BEFORE_LOCK + 1)
    ]
    assert statuses == [401] * FAILURES_BEFORE_LOCK + [429]


async def test_a_token_is_shown_once_and_is_nowhere_else(
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
    for answer in (listed, await ada.client.get(SESSION), await program.get(TOKENS)):
        assert secret not in answer.text
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


async def test_a_revoked_token_is_of_no_use_at_once(shared_harness: ApiHarness) -> None:
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


@pytest.mark.parametrize("form", [{"expires_in_days": None}, {"expires_in_days": 1}, {}])
async def test_a_token_that_is_about_to_expire_makes_none_that_outlives_it(
    form: dict[str, int | None], shared_harness: ApiHarness
) -> None:
    ada = await shared_harness.person()
    program, token_id = await shared_harness.token_client(ada)
    await _expire(shared_harness, token_id, timedelta(minutes=5))
    answer = await program.post(TOKENS, json={"name": "longer", **form})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
    assert len((await ada.client.get(TOKENS)).json()["items"]) == 1


async def test_a_token_makes_one_that_ends_before_it_does(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    program, _ = await shared_harness.token_client(ada, expires_in_days=30)
    created = await program.post(TOKENS, json={"name": "shorter", "expires_in_days": 29})
    assert created.status_code == 201
    left = datetime.fromisoformat(created.json()["expires_at"]) - shared_harness.context.now()
    assert timedelta(days=28, hours=23) < left <= timedelta(days=29)


async def test_a_token_that_never_expires_is_asked_for(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    for form, expires in (({}, True), ({"expires_in_days": None}, False)):
        created = (await ada.client.post(TOKENS, json={"name": "laptop", **form})).json()
        assert (created["expires_at"] is not None) == expires


async def test_a_token_stops_at_its_time(shared_harness: ApiHarness) -> None:
    ada = await shared_harness.person()
    program, token_id = await shared_harness.token_client(ada)
    await _expire(shared_harness, token_id, timedelta(seconds=-1))
    assert (await program.get(SESSION)).status_code == 401
    # Its owner sees why.
    assert len((await ada.client.get(TOKENS)).json()["items"]) == 1


async def test_an_account_that_is_disabled_is_out_at_once_and_stays_so_when_enabled(
    shared_harness: ApiHarness,
) -> None:
    admin, ada = await shared_harness.person(admin=True), await shared_harness.person()
    program, _ = await shared_harness.token_client(ada)
    account = f"{API}/admin/users/{ada.user_id}"
    assert (await admin.client.patch(account, json={"disabled": True})).json()["disabled_at"] is not None
    assert (await admin.client.patch(account, json={"disabled": False})).json()["disabled_at"] is None
    for client in (ada.client, program):
        assert (await client.get(SESSION)).status_code == 401


async def test_an_account_is_changed_as_a_whole_or_not_at_all(shared_harness: ApiHarness) -> None:
    admin, ada = await shared_harness.person(admin=True), await shared_harness.person()
    account = f"{API}/admin/users/{ada.user_id}"
    before = (await admin.client.get(account)).json()
    form = {"role": "admin", "disabled": True, "password": "short"}
    assert (await admin.client.patch(account, json=form)).status_code == 400
    assert (await admin.client.get(account)).json() == before
    assert (await ada.client.get(SESSION)).status_code == 200


@pytest.fixture
async def slow_harness(shared_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    """One request a second, four at once; three sign-ins a minute."""
    limits = {"CODEHUB_API_REQUESTS_PER_SECOND": "1", "CODEHUB_API_SIGN_INS_PER_MINUTE": "3"}
    async with open_harness(shared_environment | limits) as opened:
        yield opened


async def _burst(client: httpx.AsyncClient, path: str, count: int) -> list[httpx.Response]:
    return list(await asyncio.gather(*(client.get(path) for _ in range(count))))


def _assert_slowed_down(answers: list[httpx.Response], usual: int) -> None:
    assert {answer.status_code for answer in answers} == {usual, 429}
    for answer in answers:
        if answer.status_code == 429:
            assert answer.json()["error"]["code"] == "TOO_MANY_REQUESTS"
            assert int(answer.headers["retry-after"]) >= 1


async def test_who_asks_too_fast_is_slowed_down_alone(slow_harness: ApiHarness) -> None:
    ada, grace = await slow_harness.person(), await slow_harness.person()
    _assert_slowed_down(await _burst(ada.client, SESSION, 40), 200)
    # Another browser of the same person is the same caller; another person is not.
    assert (await grace.client.get(SESSION)).status_code == 200


async def test_strangers_are_slowed_down_by_address_and_nobody_else_is(slow_harness: ApiHarness) -> None:
    ada = await slow_harness.person()
    _assert_slowed_down(await _burst(slow_harness.stranger(), SESSION, 120), 401)
    assert (await ada.client.get(SESSION)).status_code == 200


async def test_health_is_told_however_often_it_is_asked(slow_harness: ApiHarness) -> None:
    answers = await _burst(slow_harness.stranger(), "/healthz", 60)
    assert {answer.status_code for answer in answers} == {200}


async def test_an_address_may_try_to_sign_in_only_so_often_whatever_the_name(
    slow_harness: ApiHarness,
) -> None:
    client = slow_harness.stranger()
    forms = [_form(f"nobody-{number}") for number in range(8)]
    answers = list(await asyncio.gather(*(client.post(LOGIN, json=form) for form in forms)))
    _assert_slowed_down(answers, 401)
