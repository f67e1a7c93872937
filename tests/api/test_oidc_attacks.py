"""Attacks on the sign-in through a provider. Each has a positive control: the honest variant signs in."""

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from api.security.access import CALLBACK
from testkit.waiting import DEADLINE_SECONDS
from tests.api.single_sign_on import BEGIN, SESSION, SingleSignOnHarness, oidc_server, sso, truth

__all__ = ["oidc_server", "sso", "truth"]

EXPIRED, REJECTED, REFUSED = "oidc_expired", "oidc_rejected", "oidc_refused"


async def test_a_callback_works_once(sso: SingleSignOnHarness) -> None:
    browser = sso.api.stranger()
    url = await sso.callback(browser, sso.new_subject())
    cookie = browser.cookies["codehub_oidc"]
    assert "signed_in=yes" in (await browser.get(url)).headers["location"]
    # The thief has even the cookie.
    thief = sso.api.stranger()
    thief.cookies.set("codehub_oidc", cookie)
    assert await sso.refused(thief, url) == EXPIRED


async def test_a_callback_works_in_the_browser_that_began_only(sso: SingleSignOnHarness) -> None:
    """Login CSRF: the attacker sends a victim the end of a sign-in to the attacker's account."""
    attacker, victim = sso.api.stranger(), sso.api.stranger()
    url = await sso.callback(attacker, sso.new_subject())
    assert await sso.refused(victim, url) == EXPIRED
    # A victim who is in the middle of a sign-in has a cookie, but another one.
    await sso.begin(victim)
    assert await sso.refused(victim, url) == EXPIRED
    assert "signed_in=yes" in (await attacker.get(url)).headers["location"]


async def test_a_code_of_one_sign_in_is_worthless_in_another(sso: SingleSignOnHarness) -> None:
    """Code injection: PKCE and the nonce tie a stolen code to the sign-in that asked for it."""
    victim, attacker = sso.api.stranger(), sso.api.stranger()
    stolen = _parameters(await sso.callback(victim, sso.new_subject()))["code"]
    own = _parameters(await sso.callback(attacker, sso.new_subject()))
    assert await sso.refused(attacker, _callback(state=own["state"], code=stolen)) == REJECTED


async def test_a_code_works_once(sso: SingleSignOnHarness) -> None:
    browser = sso.api.stranger()
    used = _parameters(await sso.callback(browser, sso.new_subject()))
    assert "signed_in=yes" in (await browser.get(_callback(**used))).headers["location"]
    other = sso.api.stranger()
    state = _parameters(await sso.begin(other))["state"]
    assert await sso.refused(other, _callback(state=state, code=used["code"])) == REJECTED


@pytest.mark.parametrize(
    "lies",
    [
        {"claims": {"nonce": "of-another-sign-in"}},
        {"claims": {"nonce": None}},
        {"claims": {"aud": "another-client"}},
        {"claims": {"aud": ["another-client", "a-third"]}},
        {"claims": {"aud": None}},
        {"claims": {"azp": "another-client"}},
        {"claims": {"iss": "https://evil.example"}},
        {"claims": {"iss": None}},
        {"claims": {"exp": 1}},
        {"claims": {"exp": None}},
        {"claims": {"iat": 99_999_999_999}},
        {"claims": {"sub": None}},
        {"claims": {"sub": ""}},
        {"claims": {"sub": "x" * 256}},
        {"claims": {"sub": "nul\0"}},
        {"algorithm": "none"},
        {"algorithm": "HS256"},
        {"key": "other"},
    ],
    ids=str,
)
async def test_an_id_token_that_proves_nothing_is_rejected(
    sso: SingleSignOnHarness, lies: dict[str, Any]
) -> None:
    browser = sso.api.stranger()
    subject = sso.new_subject()
    sso.provider.lie(**lies)
    assert await sso.refused(browser, await sso.callback(browser, subject)) == REJECTED
    # The forgery itself is harmless: the same provider without the lie signs in.
    sso.provider.lie(claims={"unknown": "claim"})
    await sso.sign_in(browser, subject)


async def test_a_response_of_another_issuer_is_rejected(sso: SingleSignOnHarness) -> None:
    """Mix-up: RFC 9207 lets a provider name itself in the response."""
    browser = sso.api.stranger()
    url = await sso.callback(browser, sso.new_subject())
    assert await sso.refused(browser, f"{url}&iss=https%3A%2F%2Fevil.example") == REJECTED
    url = await sso.callback(browser, sso.new_subject())
    assert "signed_in=yes" in (await browser.get(f"{url}&iss={sso.provider.issuer}")).headers["location"]


async def test_the_provider_sends_codes_to_the_registered_address_only(sso: SingleSignOnHarness) -> None:
    url = await sso.begin(sso.api.stranger())
    redirect = {"redirect_uri": "https://evil.example/callback"}
    elsewhere = f"{urlsplit(url)._replace(query='').geturl()}?{urlencode({**_parameters(url), **redirect})}"
    async with httpx.AsyncClient(timeout=DEADLINE_SECONDS) as client:
        assert (await client.post(elsewhere, data={"sub": "ada"})).status_code == 400
    # The Host header of a request does not decide the address either.
    response = await sso.api.stranger(host="evil.example").post(BEGIN, json={})
    asked = _parameters(response.json()["url"])
    assert asked["redirect_uri"] == sso.api.settings.public_base_url + CALLBACK


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://evil.localhost:8080"},
    ],
    ids=str,
)
async def test_another_site_cannot_begin_a_sign_in(sso: SingleSignOnHarness, headers: dict[str, str]) -> None:
    assert (await sso.api.stranger(**headers).post(BEGIN, json={})).status_code == 403


async def test_a_refusal_of_the_provider_and_an_empty_callback_are_explained(
    sso: SingleSignOnHarness,
) -> None:
    browser = sso.api.stranger()
    state = _parameters(await sso.begin(browser))["state"]
    assert await sso.refused(browser, _callback(state=state, error="access_denied")) == REFUSED
    assert await sso.refused(browser, CALLBACK) == EXPIRED
    assert await sso.refused(browser, _callback(state="x", code="y")) == EXPIRED
    assert (await browser.get(_callback(state="x" * 5000))).status_code == 400


async def test_a_sign_in_in_a_browser_of_somebody_else_replaces_the_session(
    sso: SingleSignOnHarness,
) -> None:
    """Session fixation: a cookie that was there before does not become the session of the new user."""
    browser = sso.api.stranger()
    browser.cookies.set("codehub_session", "chosen-by-the-attacker")
    browser.cookies.clear()
    await sso.sign_in(browser, sso.new_subject())
    before = browser.cookies["codehub_session"]
    await sso.sign_in(browser, sso.new_subject())
    assert browser.cookies["codehub_session"] not in {before, "chosen-by-the-attacker"}
    thief = sso.api.stranger()
    thief.cookies.set("codehub_session", "chosen-by-the-attacker")
    assert (await thief.get(SESSION)).status_code == 401


def _parameters(url: str) -> dict[str, str]:
    return {name: each[0] for name, each in parse_qs(urlsplit(url).query).items()}


def _callback(**parameters: str) -> str:
    return f"{CALLBACK}?{urlencode(parameters)}"
