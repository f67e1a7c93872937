"""The second factor of local accounts: adding it, signing in with it, losing it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import httpx
import pyotp
import pytest
from sqlalchemy import update

from api.security.access import API
from codehub.db.models import Authenticator, Session
from codehub.domain.lockout import FAILURES_BEFORE_LOCK
from codehub.domain.one_time_codes import step_at
from tests.api.harness import PASSWORD, ApiHarness, Person, open_harness

LOGIN = f"{API}/login"
AUTHENTICATOR = f"{API}/authenticator"
AUDIT = f"{API}/admin/audit"


async def _sign_in(api: ApiHarness, person: Person, code: str | None = None) -> httpx.Response:
    form = {"username": person.username, "password": PASSWORD, **({"code": code} if code else {})}
    return await api.stranger().post(LOGIN, json=form)


async def _add_app(person: Person) -> tuple[pyotp.TOTP, list[str]]:
    """Add an authenticator app; return it and the recovery codes."""
    added = await person.client.post(AUTHENTICATOR)
    assert added.status_code == 201, added.text
    app = pyotp.TOTP(added.json()["secret"])
    enabled = await person.client.post(f"{AUTHENTICATOR}/enable", json={"code": app.now()})
    assert enabled.status_code == 200, enabled.text
    return app, enabled.json()["codes"]


async def _forget_last_code(api: ApiHarness, user_id: UUID) -> None:
    """As if the next half minute had begun: tests do not wait for it."""
    async with api.context.database.transaction() as session:
        await session.execute(
            update(Authenticator).where(Authenticator.user_id == user_id).values(last_step=None)
        )


async def _forget_confirmation(api: ApiHarness, user_id: UUID) -> None:
    """As if the password had been entered long ago."""
    long_ago = api.context.now() - timedelta(hours=1)
    async with api.context.database.transaction() as session:
        await session.execute(update(Session).where(Session.user_id == user_id).values(confirmed_at=long_ago))


async def _person_with_app(api: ApiHarness) -> tuple[Person, pyotp.TOTP, list[str]]:
    person = await api.person()
    app, codes = await _add_app(person)
    await _forget_last_code(api, person.user_id)
    return person, app, codes


async def test_a_sign_in_needs_the_password_and_a_code(shared_harness: ApiHarness) -> None:
    person, app, _ = await _person_with_app(shared_harness)
    without = await _sign_in(shared_harness, person)
    assert (without.status_code, without.json()["error"]["code"]) == (401, "SECOND_FACTOR_REQUIRED")
    assert "set-cookie" not in without.headers
    assert (await _sign_in(shared_harness, person, app.now())).status_code == 200


async def test_a_wrong_password_does_not_tell_that_there_is_a_second_factor(
    shared_harness: ApiHarness,
) -> None:
    person, app, _ = await _person_with_app(shared_harness)
    for code in ({}, {"code": app.now()}):
        form = {"username": person.username, "password": "wrong horse", **code}
        refused = await shared_harness.stranger().post(LOGIN, json=form)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHORIZED")


async def test_a_code_works_once_and_not_earlier_ones_after_it(shared_harness: ApiHarness) -> None:
    person, app, _ = await _person_with_app(shared_harness)
    step = step_at(shared_harness.context.now())
    code, earlier = app.generate_otp(step), app.generate_otp(step - 1)
    assert (await _sign_in(shared_harness, person, code)).status_code == 200
    assert (await _sign_in(shared_harness, person, code)).status_code == 401
    assert (await _sign_in(shared_harness, person, earlier)).status_code == 401


async def test_of_equal_codes_at_the_same_time_one_works(shared_harness: ApiHarness) -> None:
    person, app, _ = await _person_with_app(shared_harness)
    responses = await asyncio.gather(
        *(_sign_in(shared_harness, person, app.now()) for _ in range(FAILURES_BEFORE_LOCK))
    )
    assert sorted(each.status_code for each in responses) == [200] + [401] * (FAILURES_BEFORE_LOCK - 1)


@pytest.mark.parametrize("minutes", [-2, 2])
async def test_a_code_of_another_time_does_not_work(shared_harness: ApiHarness, minutes: int) -> None:
    person, app, _ = await _person_with_app(shared_harness)
    other = app.at(shared_harness.context.now() + timedelta(minutes=minutes))
    assert (await _sign_in(shared_harness, person, other)).status_code == 401


async def test_wrong_codes_lock_the_account(shared_harness: ApiHarness) -> None:
    person, app, _ = await _person_with_app(shared_harness)
    for _ in range(FAILURES_BEFORE_LOCK):
        assert (await _sign_in(shared_harness, person, "nothing")).status_code == 401
    assert (await _sign_in(shared_harness, person, app.now())).status_code == 429


async def test_asking_for_the_code_is_no_failure_and_forgives_none(shared_harness: ApiHarness) -> None:
    person, app, _ = await _person_with_app(shared_harness)
    for _ in range(FAILURES_BEFORE_LOCK - 1):
        assert (await _sign_in(shared_harness, person, "nothing")).status_code == 401
    for _ in range(3):
        assert (await _sign_in(shared_harness, person)).status_code == 401
    # A reset by the right password alone would let an attacker try codes without end.
    assert (await _sign_in(shared_harness, person, "nothing")).status_code == 401
    assert (await _sign_in(shared_harness, person, app.now())).status_code == 429


async def test_each_recovery_code_works_once(shared_harness: ApiHarness) -> None:
    person, _, codes = await _person_with_app(shared_harness)
    assert len(set(codes)) == 10
    assert (await _sign_in(shared_harness, person, codes[0].upper().replace("-", " "))).status_code == 200
    assert (await _sign_in(shared_harness, person, codes[0])).status_code == 401
    assert (await _sign_in(shared_harness, person, codes[1])).status_code == 200
    assert (await person.client.get(AUTHENTICATOR)).json()["recovery_codes_left"] == 8


async def test_an_app_counts_once_a_code_has_proved_that_it_works(shared_harness: ApiHarness) -> None:
    person = await shared_harness.person()
    assert (await person.client.get(AUTHENTICATOR)).json()["enabled_at"] is None
    no_app = await person.client.post(f"{AUTHENTICATOR}/enable", json={"code": "123456"})
    assert no_app.status_code == 409
    added = (await person.client.post(AUTHENTICATOR)).json()
    assert added["uri"].startswith("otpauth://totp/CodeHub:")
    wrong = await person.client.post(f"{AUTHENTICATOR}/enable", json={"code": "nothing"})
    assert wrong.status_code == 400
    assert (await _sign_in(shared_harness, person)).status_code == 200


async def test_changes_need_the_password_again(shared_harness: ApiHarness) -> None:
    person, *_ = await _person_with_app(shared_harness)
    # A second app would replace the first without a trace on the phone.
    assert (await person.client.post(AUTHENTICATOR)).status_code == 409
    await _forget_confirmation(shared_harness, person.user_id)
    for method in ("POST", "DELETE"):
        refused = await person.client.request(method, AUTHENTICATOR)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "REAUTHENTICATION_REQUIRED")
    assert (await _sign_in(shared_harness, person)).json()["error"]["code"] == "SECOND_FACTOR_REQUIRED"
    await person.client.post(f"{API}/session/confirm", json={"password": PASSWORD})
    assert (await person.client.delete(AUTHENTICATOR)).status_code == 204
    assert (await _sign_in(shared_harness, person)).status_code == 200


async def test_a_token_cannot_touch_the_second_factor(shared_harness: ApiHarness) -> None:
    person, *_ = await _person_with_app(shared_harness)
    token, _ = await shared_harness.token_client(person)
    for method in ("POST", "DELETE"):
        assert (await token.request(method, AUTHENTICATOR)).status_code == 403


async def test_an_administrator_removes_the_app_of_a_user_and_the_audit_log_says_so(
    shared_harness: ApiHarness,
) -> None:
    person, *_ = await _person_with_app(shared_harness)
    admin = await shared_harness.person(admin=True)
    path = f"{API}/admin/users/{person.user_id}/authenticator"
    assert (await person.client.delete(path)).status_code == 403
    assert (await admin.client.delete(path)).status_code == 204
    assert (await _sign_in(shared_harness, person)).status_code == 200
    entries = (await admin.client.get(AUDIT)).json()["items"]
    told = {(each["action"], each["actor"], each["target"]) for each in entries}
    assert ("user_authenticator", admin.username, person.username) in told
    assert ("authenticator_add", person.username, None) in told


@pytest.fixture
async def strict(shared_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    """An API whose administrators need a second factor."""
    environment = {**shared_environment, "CODEHUB_API_ADMIN_SECOND_FACTOR": "required"}
    async with open_harness(environment) as opened:
        yield opened.with_cheap_passwords()


async def test_administrators_can_be_required_to_have_one(strict: ApiHarness) -> None:
    admin, user = await strict.person(admin=True), await strict.person()
    refused = await admin.client.get(f"{API}/admin/users")
    assert (refused.status_code, "authenticator app" in refused.text) == (403, True)
    token, _ = await strict.token_client(admin)
    assert (await token.get(f"{API}/admin/users")).status_code == 403
    assert (await admin.client.get(AUTHENTICATOR)).json()["required"] is True
    assert (await user.client.get(f"{API}/workspaces")).status_code == 200
    workspace = f"{API}/workspaces/{(await user.create())['id']}"
    for client in (admin.client, token):
        assert (await client.get(workspace)).status_code == 403
        assert (await client.delete(workspace)).status_code == 403
    await _add_app(admin)
    assert (await admin.client.get(workspace)).status_code == 200
    assert (await admin.client.get(f"{API}/admin/users")).status_code == 200
