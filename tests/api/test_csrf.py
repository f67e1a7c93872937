"""What a page can do with a user's cookie, and the security headers of every response."""

from collections.abc import AsyncIterator
from http.cookies import Morsel, SimpleCookie

import httpx
import pytest

from api.security.access import ACCESS, API, Access
from api.security.csrf import CSRF_HEADER, csrf_token_of
from codehub.cookies import DUPLICATE
from codehub.db.session import Database
from codehub.security_headers import SECURITY_HEADERS
from tests.api.harness import ORIGIN, PASSWORD, ApiHarness, Person, open_harness

WORKSPACES = f"{API}/workspaces"
FORM = {"name": "home", "desired_state": "STANDBY"}
COOKIE = "codehub_session"
HTTPS = "https://codehub.example"
OUR_PAGE = {
    "Origin": ORIGIN,
    "Referer": f"{ORIGIN}/workspaces",
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Mode": "cors",
}
WORKSPACE_PAGE = OUR_PAGE | {"Referer": f"{ORIGIN}/w/0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44/"}
OTHER_SITE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
CHANGES = sorted(
    route for route, access in ACCESS.items() if route[0] != "GET" and access is not Access.PUBLIC
)


@pytest.fixture(scope="module")
async def ada(shared_harness: ApiHarness) -> Person:
    return await shared_harness.person()


def _without_csrf(person: Person) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={person.client.cookies[COOKIE]}"}


def _code(response: httpx.Response) -> str:
    return str(response.json()["error"]["code"])


@pytest.mark.parametrize("route", CHANGES, ids=" ".join)
@pytest.mark.parametrize("token", [None, "", "wrong", "x" * 43], ids=["none", "empty", "wrong", "as long"])
async def test_a_change_by_cookie_needs_the_right_csrf_token(
    token: str | None, route: tuple[str, str], shared_harness: ApiHarness, ada: Person
) -> None:
    method, path = route
    headers = _without_csrf(ada) | ({} if token is None else {CSRF_HEADER: token})
    response = await shared_harness.stranger().request(method, path, headers=headers)
    assert (response.status_code, _code(response)) == (403, "CSRF_TOKEN_MISSING")
    assert (await ada.client.get(f"{API}/session")).status_code == 200


async def test_the_csrf_token_of_another_session_of_the_same_user_is_refused(
    shared_harness: ApiHarness, ada: Person
) -> None:
    other = shared_harness.stranger()
    await shared_harness.sign_in(other, ada.username)
    headers = _without_csrf(ada) | {CSRF_HEADER: other.headers[CSRF_HEADER]}
    response = await shared_harness.stranger().post(WORKSPACES, json=FORM, headers=headers)
    assert (response.status_code, _code(response)) == (403, "CSRF_TOKEN_MISSING")


async def test_the_session_route_returns_the_right_csrf_token(
    shared_harness: ApiHarness, ada: Person
) -> None:
    client = shared_harness.stranger()
    client.headers.update(_without_csrf(ada))
    token = (await client.get(f"{API}/session")).json()["csrf_token"]
    assert token == csrf_token_of(ada.client.cookies[COOKIE])
    response = await client.post(WORKSPACES, json=FORM, headers=OUR_PAGE | {CSRF_HEADER: token})
    assert response.status_code == 201


@pytest.mark.parametrize("planted", ["{0}; {1}", "{1}; {0}"])
async def test_a_second_session_cookie_is_refused(
    shared_harness: ApiHarness, ada: Person, planted: str
) -> None:
    own = _without_csrf(ada)["Cookie"]
    stranger = shared_harness.stranger()
    for cookies in ([planted.format(own, f"{COOKIE}=planted")], [own, f"{COOKIE}=planted"]):
        headers = [("Cookie", each) for each in cookies]
        response = await stranger.get(f"{API}/session", headers=headers)
        assert (response.status_code, response.json()["error"]["message"]) == (400, DUPLICATE)


async def test_a_csrf_token_does_not_reveal_the_cookie(ada: Person) -> None:
    assert ada.client.cookies[COOKIE] not in ada.client.headers[CSRF_HEADER]
    assert ada.client.headers[CSRF_HEADER] not in ada.client.cookies[COOKIE]


async def test_a_csrf_token_alone_does_not_authenticate(shared_harness: ApiHarness, ada: Person) -> None:
    headers = {CSRF_HEADER: ada.client.headers[CSRF_HEADER]}
    assert (await shared_harness.stranger().post(WORKSPACES, json=FORM, headers=headers)).status_code == 401


async def test_a_personal_token_needs_no_csrf_token(shared_harness: ApiHarness, ada: Person) -> None:
    client, _ = await shared_harness.token_client(ada)
    assert (await client.post(WORKSPACES, json=FORM)).status_code == 201
    assert (await client.get(f"{API}/session")).json()["csrf_token"] is None


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json-patch+json",
        "application/xml",
        "text/plain; application/json",
        "application/jsonp",
        "",
    ],
)
@pytest.mark.parametrize("path", [WORKSPACES, f"{API}/login", f"{API}/logout", f"{API}/tokens"])
async def test_bodies_that_are_not_json_are_refused(path: str, content_type: str, ada: Person) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    response = await ada.client.post(path, content=b'{"name": "home"}', headers=headers)
    assert (response.status_code, _code(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "Application/JSON ;charset=utf-8"]
)
async def test_a_json_media_type_may_have_a_charset(content_type: str, ada: Person) -> None:
    body = b'{"name": "home", "desired_state": "STANDBY"}'
    response = await ada.client.post(WORKSPACES, content=body, headers={"Content-Type": content_type})
    assert response.status_code == 201


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("page", [WORKSPACE_PAGE, OTHER_SITE], ids=["workspace", "other site"])
async def test_a_cookie_does_not_authenticate_requests_of_foreign_pages(
    page: dict[str, str], method: str, ada: Person
) -> None:
    # Even with the right CSRF token.
    response = await ada.client.request(method, WORKSPACES, json=FORM, headers=page)
    assert (response.status_code, _code(response)) == (401, "UNAUTHORIZED")
    ours = await ada.client.request(method, WORKSPACES, json=FORM, headers=OUR_PAGE)
    assert ours.is_success


READS = sorted(path for method, path in ACCESS if method == "GET" and ACCESS[method, path] is Access.USER)


@pytest.mark.parametrize("path", READS)
async def test_a_read_that_no_page_of_ours_vouches_for_needs_the_csrf_token(
    path: str, shared_harness: ApiHarness, ada: Person
) -> None:
    # As sent by a script or image tag of a workspace's page on a plain-http host name.
    response = await shared_harness.stranger().get(path, headers=_without_csrf(ada))
    if path == f"{API}/session":
        # Where pages of ours get the token. Other origins cannot read it.
        assert (response.status_code, response.headers["cross-origin-resource-policy"]) == (
            200,
            "same-origin",
        )
        return
    assert (response.status_code, _code(response)) == (403, "CSRF_TOKEN_MISSING")
    if path != f"{API}/events":
        proof: dict[str, str]
        for proof in ({"Referer": f"{ORIGIN}/account"}, {CSRF_HEADER: ada.client.headers[CSRF_HEADER]}):
            response = await shared_harness.stranger().get(path, headers=_without_csrf(ada) | proof)
            assert response.status_code == 200


@pytest.mark.parametrize("path", [f"{API}/session", f"{API}/events", f"{API}/sessions", f"{API}/tokens"])
async def test_the_page_of_a_workspace_cannot_read_the_api(path: str, ada: Person) -> None:
    assert (await ada.client.get(path, headers=WORKSPACE_PAGE)).status_code == 401


@pytest.mark.parametrize(
    "page", [WORKSPACE_PAGE, OTHER_SITE, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}]
)
async def test_a_foreign_page_cannot_sign_a_user_in(
    page: dict[str, str], shared_harness: ApiHarness, ada: Person
) -> None:
    client = shared_harness.stranger()
    form = {"username": ada.username, "password": PASSWORD}
    response = await client.post(f"{API}/login", json=form, headers=page)
    assert (response.status_code, _code(response)) == (403, "FORBIDDEN")
    assert "set-cookie" not in response.headers
    assert (await client.post(f"{API}/login", json=form, headers=OUR_PAGE)).status_code == 200


async def test_a_foreign_page_cannot_sign_a_user_out(ada: Person) -> None:
    response = await ada.client.post(f"{API}/logout", headers=OTHER_SITE)
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
    assert (await ada.client.get(f"{API}/session")).status_code == 200


async def _cookie(harness: ApiHarness, person: Person) -> "Morsel[str]":
    form = {"username": person.username, "password": PASSWORD}
    response = await harness.stranger().post(f"{API}/login", json=form)
    return cookies_set_by(response)[COOKIE]


def cookies_set_by(response: httpx.Response) -> dict[str, "Morsel[str]"]:
    headers = response.headers.get_list("set-cookie")
    return {key: cookie for header in headers for key, cookie in SimpleCookie(header).items()}


async def test_the_cookie_is_http_only_and_same_site(shared_harness: ApiHarness, ada: Person) -> None:
    cookie = await _cookie(shared_harness, ada)
    assert cookie.key == COOKIE
    assert cookie["httponly"]
    assert cookie["samesite"].lower() == "lax"
    assert cookie["path"] == "/"
    assert cookie["domain"] == ""
    assert not cookie["secure"]
    assert cookie["expires"]


@pytest.fixture
async def https_harness(shared_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    own = {"CODEHUB_PUBLIC_BASE_URL": HTTPS, "CODEHUB_WORKSPACES_DOMAIN": "workspaces.example"}
    async with open_harness(shared_environment | own) as opened:
        yield opened


async def test_on_https_the_cookie_is_secure_and_bound_to_its_host(https_harness: ApiHarness) -> None:
    # The test client uses http, so it would not send a Secure cookie.
    await https_harness.person("grace-of-https")
    client = https_harness.stranger()
    form = {"username": "grace-of-https", "password": PASSWORD}
    response = await client.post(f"{API}/login", json=form, headers={"Origin": HTTPS})
    cookies = cookies_set_by(response)
    assert cookies.keys() == {"__Host-codehub_session", "__Host-codehub_device"}
    for cookie in cookies.values():
        assert cookie["secure"]
        assert cookie["path"] == "/"
        assert cookie["domain"] == ""
    cookie = cookies["__Host-codehub_session"]
    assert response.headers["strict-transport-security"].startswith("max-age=")
    # A cookie without the prefix may have been set by another host or by a page without TLS.
    for name, status in ((COOKIE, 401), (cookie.key, 200)):
        headers = {"Cookie": f"{name}={cookie.value}"}
        assert (await client.get(f"{API}/session", headers=headers)).status_code == status
    headers = {"Cookie": f"{cookie.key}={cookie.value}", CSRF_HEADER: response.json()["csrf_token"]}
    gone = await client.post(f"{API}/logout", headers=headers | {"Origin": HTTPS})
    (ended,) = SimpleCookie(gone.headers["set-cookie"]).values()
    # Browsers delete such a cookie only if the attributes match.
    assert (ended.key, ended["path"], ended["secure"]) == (cookie.key, "/", True)


async def test_on_https_the_openapi_document_has_the_name_of_the_secure_cookie(
    https_harness: ApiHarness,
) -> None:
    document = (await https_harness.stranger().get(f"{API}/openapi.json")).json()
    assert document["components"]["securitySchemes"]["session"]["name"] == "__Host-codehub_session"


async def _answers(
    harness: ApiHarness, person: Person, monkeypatch: pytest.MonkeyPatch
) -> dict[int, httpx.Response]:
    """Return one response of each kind."""
    created = await person.create()
    workspace = f"{WORKSPACES}/{created['id']}"
    stranger = harness.stranger()
    responses = [
        await person.client.get(f"{API}/session"),
        await person.client.post(WORKSPACES, json=FORM),
        await person.client.delete(workspace),
        await person.client.get(workspace, headers={"If-None-Match": "*"}),
        await person.client.get(WORKSPACES, params={"limit": 0}),
        await stranger.get(WORKSPACES),
        await person.client.get(f"{API}/admin/status"),
        await stranger.get("/nowhere"),
        await stranger.put(WORKSPACES),
        await person.client.post(f"{workspace}/recover", json={}),
        await person.client.patch(workspace, json={}, headers={"If-Match": "none"}),
        await person.client.post(WORKSPACES, json={"name": "n" * 2_000_000}),
        await person.client.post(WORKSPACES, content=b"x", headers={"Content-Type": "text/plain"}),
    ]

    def fail(database: Database) -> None:
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr(Database, "transaction", fail)
    responses.append(await person.client.get(f"{API}/session"))

    def be_down(database: Database) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(Database, "transaction", be_down)
    responses.append(await person.client.get(f"{API}/session"))
    monkeypatch.undo()
    other = await harness.person()
    signed_out = await other.client.post(f"{API}/logout")
    return {response.status_code: response for response in (*responses, signed_out)}


async def test_every_kind_of_response_has_security_headers_and_no_cors(
    shared_harness: ApiHarness, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = await _answers(shared_harness, ada, monkeypatch)
    kinds = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 500, 503}
    assert set(responses) == kinds
    for response in responses.values():
        for name, value in SECURITY_HEADERS.items():
            assert response.headers[name] == value
        assert response.headers["x-request-id"]
        assert not [name for name in response.headers if name.startswith("access-control-")]
        assert "server" not in response.headers


async def test_an_unexpected_error_reveals_only_its_request_id(
    shared_harness: ApiHarness, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = await _answers(shared_harness, ada, monkeypatch)
    problem = responses[500].json()["error"]
    assert set(problem) == {"code", "message", "request_id"}
    assert "of a test" not in responses[500].text


async def test_no_other_site_may_read_responses(shared_harness: ApiHarness, ada: Person) -> None:
    headers = OTHER_SITE | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": f"content-type,{CSRF_HEADER}",
    }
    for path in sorted({path for _, path in ACCESS}):
        response = await shared_harness.stranger().options(path, headers=headers)
        assert response.status_code == 405
        assert not [name for name in response.headers if name.startswith("access-control-")]
    for method in ("GET", "POST"):
        response = await ada.client.request(method, WORKSPACES, json=FORM, headers=OTHER_SITE)
        assert not [name for name in response.headers if name.startswith("access-control-")]
