"""Signing in through a real OpenID provider: accounts, groups, and what stays local."""

from urllib.parse import parse_qs, urlsplit

import pytest

from api.security.access import API, CALLBACK
from codehub.services.users import add_user, disable_user, find_user
from testkit.rows import BY
from tests.api.harness import PASSWORD, ApiHarness, open_harness
from tests.api.single_sign_on import (
    ADMIN_GROUP,
    ALLOWED_GROUP,
    BEGIN,
    SESSION,
    SingleSignOnHarness,
    environment_with,
    oidc_server,
    parameters_of,
    sso,
    truth,
)

__all__ = ["oidc_server", "sso", "truth"]

LOGIN = f"{API}/login"
OPTIONS = f"{API}/sign-in"


async def test_a_first_sign_in_creates_the_account_and_the_next_ones_use_it(sso: SingleSignOnHarness) -> None:
    subject = sso.new_subject(preferred_username="grace.hopper")
    first = await sso.sign_in(sso.api.stranger(), subject)
    assert (first["user"]["username"], first["user"]["role"]) == ("grace.hopper", "user")
    # The name at the provider may change; issuer and subject are the person.
    sso.provider.set_person(subject, preferred_username="someone-else", groups=[ALLOWED_GROUP])
    second = await sso.sign_in(sso.api.stranger(), subject)
    assert second["user"] == first["user"]
    assert second["csrf_token"] != first["csrf_token"]


async def test_the_request_to_the_provider_has_state_nonce_challenge_and_the_exact_redirect(
    sso: SingleSignOnHarness,
) -> None:
    urls = [await sso.begin(sso.api.stranger()) for _ in range(2)]
    asked = [{name: each[0] for name, each in parse_qs(urlsplit(url).query).items()} for url in urls]
    assert asked[0]["response_type"] == "code"
    assert asked[0]["code_challenge_method"] == "S256"
    assert asked[0]["redirect_uri"] == sso.api.settings.public_base_url + CALLBACK
    for secret in ("state", "nonce", "code_challenge"):
        assert len(asked[0][secret]) >= 43
        assert asked[0][secret] != asked[1][secret]


async def test_the_next_page_travels_through_our_sign_in_page_only(sso: SingleSignOnHarness) -> None:
    browser = sso.api.stranger()
    url = await sso.callback(browser, sso.new_subject(), "https://evil.example/")
    response = await browser.get(url)
    assert parameters_of(response) == {"signed_in": "yes", "next": "https://evil.example/"}
    # The page opens a next path of this CodeHub only (tests/dashboard/pages.test.mjs).
    assert response.headers["location"].startswith(f"{sso.api.settings.public_base_url}/login?")
    cookies = response.headers.get_list("set-cookie")
    (new,) = [each for each in cookies if each.startswith("codehub_session=")]
    assert "HttpOnly" in new
    assert "SameSite=lax" in new
    assert any(each.startswith('codehub_oidc=""') for each in cookies)


async def test_a_taken_name_gets_a_number_and_the_other_account_stays_its_owners(
    sso: SingleSignOnHarness,
) -> None:
    local = await sso.api.person("linus", admin=True)
    mine = await sso.sign_in(sso.api.stranger(), sso.new_subject(preferred_username="Linus"))
    other = await sso.sign_in(sso.api.stranger(), sso.new_subject(preferred_username="linus"))
    assert [each["user"]["username"] for each in (mine, other)] == ["Linus-2", "linus-3"]
    assert str(local.user_id) not in {mine["user"]["id"], other["user"]["id"]}
    assert mine["user"]["role"] == "user"


async def test_an_email_address_links_nothing(sso: SingleSignOnHarness) -> None:
    await sso.api.person("root@example.com", admin=True)
    subject = sso.new_subject(preferred_username=None, email="root@example.com", email_verified=True)
    session = await sso.sign_in(sso.api.stranger(), subject)
    assert session["user"]["role"] == "user"
    assert session["user"]["username"] != "root@example.com"


async def test_groups_decide_the_role_at_every_sign_in(sso: SingleSignOnHarness) -> None:
    subject = sso.new_subject(preferred_username="margaret", groups=[ADMIN_GROUP])
    browser = sso.api.stranger()
    assert (await sso.sign_in(browser, subject))["user"]["role"] == "admin"
    assert (await browser.get(f"{API}/admin/users")).status_code == 200
    sso.provider.set_person(subject, preferred_username="margaret", groups=[ALLOWED_GROUP])
    assert (await sso.sign_in(sso.api.stranger(), subject))["user"]["role"] == "user"
    # The session from before has lost the role too.
    assert (await browser.get(f"{API}/admin/users")).status_code == 403


@pytest.mark.parametrize("groups", [[], ["guests"], None, {"engineers": True}])
async def test_a_person_in_no_allowed_group_gets_no_account(sso: SingleSignOnHarness, groups: object) -> None:
    browser = sso.api.stranger()
    url = await sso.callback(browser, sso.new_subject(groups=groups, preferred_username="stranger"))
    assert await sso.refused(browser, url) == "oidc_not_allowed"
    admin = await sso.api.person(admin=True)
    listed = (await admin.client.get(f"{API}/admin/users?limit=200")).json()["items"]
    assert "stranger" not in {user["username"] for user in listed}


async def test_a_disabled_account_stays_disabled(sso: SingleSignOnHarness) -> None:
    subject = sso.new_subject()
    username = (await sso.sign_in(sso.api.stranger(), subject))["user"]["username"]
    user = await find_user(sso.api.context.database, username)
    await disable_user(sso.api.context.database, user.id, by=BY, now=sso.api.context.now())
    browser = sso.api.stranger()
    assert await sso.refused(browser, await sso.callback(browser, subject)) == "oidc_disabled"


async def test_an_account_of_the_provider_has_no_password(sso: SingleSignOnHarness) -> None:
    username = (await sso.sign_in(sso.api.stranger(), sso.new_subject()))["user"]["username"]
    for password in ("!", "", PASSWORD):
        response = await sso.api.stranger().post(LOGIN, json={"username": username, "password": password})
        assert response.status_code in {400, 401}


async def test_signing_out_ends_the_session(sso: SingleSignOnHarness) -> None:
    browser = sso.api.stranger()
    await sso.sign_in(browser, sso.new_subject())
    cookie = browser.cookies["codehub_session"]
    assert (await browser.post(f"{API}/logout")).status_code == 204
    browser.cookies.set("codehub_session", cookie)
    assert (await browser.get(SESSION)).status_code == 401


async def test_an_outage_is_said_and_heals(sso: SingleSignOnHarness) -> None:
    browser = sso.api.stranger()
    subject = sso.new_subject()
    sso.provider.lie(failing=True)
    async with open_harness(sso.api.environment) as restarted:
        response = await restarted.stranger().post(BEGIN, json={})
        assert response.status_code == 503
        assert response.json()["error"]["message"] == "Example is not responding. Try again in a minute."
        sso.provider.lie()
        assert (await restarted.stranger().post(BEGIN, json={})).status_code == 200
    url = await sso.callback(browser, subject)
    sso.provider.lie(failing=True)
    assert await sso.refused(browser, url) == "oidc_unavailable"
    sso.provider.lie()
    await sso.sign_in(browser, subject)


async def test_rotated_keys_are_found_without_a_restart(sso: SingleSignOnHarness) -> None:
    await sso.sign_in(sso.api.stranger(), sso.new_subject())
    sso.provider.lie(rotate=True)
    await sso.sign_in(sso.api.stranger(), sso.new_subject())


async def test_without_a_provider_there_is_only_the_password(shared_harness: ApiHarness) -> None:
    stranger = shared_harness.stranger()
    assert (await stranger.get(OPTIONS)).json() == {"provider": None, "passwords": "everyone"}
    assert (await stranger.post(BEGIN, json={})).status_code == 404
    assert (await stranger.get(CALLBACK)).status_code == 404


async def test_passwords_can_be_kept_for_administrators(
    sso: SingleSignOnHarness, shared_environment: dict[str, str]
) -> None:
    restriction = {"CODEHUB_OIDC_PASSWORD_SIGN_IN": "administrators"}
    environment = environment_with(shared_environment, sso.provider, **restriction)
    async with open_harness(environment) as opened:
        restricted = opened.with_cheap_passwords()
        options = (await restricted.stranger().get(OPTIONS)).json()
        assert options == {"provider": "Example", "passwords": "administrators"}
        await restricted.person("local-administrator", admin=True)
        context = restricted.context
        await add_user(
            context.database, context.passwords, "local-person", PASSWORD, by=BY, now=context.now()
        )
        credentials = {"username": "local-person", "password": PASSWORD}
        # The positive control: the same password works where everyone may use one.
        assert (await sso.api.stranger().post(LOGIN, json=credentials)).status_code == 200
        refused = await restricted.stranger().post(LOGIN, json=credentials)
        unknown = await restricted.stranger().post(LOGIN, json={"username": "nobody", "password": PASSWORD})
        assert refused.status_code == unknown.status_code == 401
        assert refused.json()["error"]["message"] == unknown.json()["error"]["message"]
