"""Accounts without a password: authenticating again at the provider takes its place."""

import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from api.security.access import API
from api.security.csrf import CSRF_HEADER
from tests.api.single_sign_on import SESSION, SingleSignOnHarness, oidc_server, sso, truth

__all__ = ["oidc_server", "sso", "truth"]

TOKENS = f"{API}/tokens"
HOUR = 3600


async def _create_token(browser: httpx.AsyncClient) -> tuple[int, str]:
    browser.headers[CSRF_HEADER] = (await browser.get(SESSION)).json()["csrf_token"]
    response = await browser.post(TOKENS, json={"name": "laptop"})
    return response.status_code, response.json().get("error", {}).get("code", "")


async def _sign_in_afresh(
    sso: SingleSignOnHarness, browser: httpx.AsyncClient, subject: str
) -> httpx.Response:
    url = await sso.begin(browser, "/account", fresh=True)
    return await browser.get(sso.provider.authenticate(url, subject))


async def test_a_fresh_sign_in_asks_the_provider_to_authenticate_again(sso: SingleSignOnHarness) -> None:
    usual, fresh = [
        parse_qs(urlsplit(await sso.begin(sso.api.stranger(), fresh=each)).query) for each in (False, True)
    ]
    assert not {"prompt", "max_age"} & usual.keys()
    assert (fresh["prompt"], fresh["max_age"]) == (["login"], ["0"])


@pytest.mark.parametrize("auth_time", [-HOUR, None])
async def test_an_old_session_at_the_provider_does_not_count_as_a_password(
    sso: SingleSignOnHarness, auth_time: int | None
) -> None:
    browser, subject = sso.api.stranger(), sso.new_subject()
    when = None if auth_time is None else int(time.time()) + auth_time
    sso.provider.lie(claims={"auth_time": when})
    await sso.sign_in(browser, subject)
    assert await _create_token(browser) == (403, "REAUTHENTICATION_REQUIRED")
    sso.provider.lie()
    response = await _sign_in_afresh(sso, browser, subject)
    assert "signed_in=yes" in response.headers["location"]
    assert await _create_token(browser) == (201, "")


@pytest.mark.parametrize("auth_time", [-HOUR, None, True])
async def test_a_provider_that_did_not_ask_again_is_rejected(
    sso: SingleSignOnHarness, auth_time: int | None
) -> None:
    browser, subject = sso.api.stranger(), sso.new_subject()
    claim = int(time.time()) + auth_time if auth_time == -HOUR else auth_time
    sso.provider.lie(claims={"auth_time": claim})
    response = await _sign_in_afresh(sso, browser, subject)
    assert "problem=oidc_rejected" in response.headers["location"]


async def test_a_time_in_the_future_confirms_no_longer_than_now(sso: SingleSignOnHarness) -> None:
    browser = sso.api.stranger()
    sso.provider.lie(claims={"auth_time": int(time.time()) + 10 * HOUR})
    session = await sso.sign_in(browser, sso.new_subject())
    listed = (await browser.get(f"{API}/sessions")).json()["items"]
    assert [each["id"] for each in listed] == [session["id"]]
    assert await _create_token(browser) == (201, "")
