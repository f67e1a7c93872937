"""Which requests a session cookie authenticates, as a table of what browsers and programs send."""

import pytest

from api.security.csrf import is_cookie_trusted, is_own_page
from codehub.origins import Origins, origin_of

PUBLIC = "https://codehub.example"
HOST = {"host": "codehub.example"}
DIRECT = {"host": "127.0.0.1:8081"}
OURS = Origins(PUBLIC)
PAGE = {"referer": f"{PUBLIC}/workspaces"}
WORKSPACE = {"referer": f"{PUBLIC}/w/0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44/?folder=/home"}
SAME_ORIGIN_FETCH = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
SAME_ORIGIN_NAVIGATION = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
TYPED_IN = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}
ORIGIN = {"origin": PUBLIC}

Headers = dict[str, str]
# The headers, whether the cookie authenticates reads, whether it authenticates changes.
TABLE: dict[str, tuple[Headers, bool, bool]] = {
    "curl": (HOST, True, True),
    "curl without a host": ({}, True, True),
    "typed into the address bar": (HOST | TYPED_IN, True, False),
    "our page fetches": (HOST | PAGE | SAME_ORIGIN_FETCH, True, False),
    "our page fetches with its origin": (HOST | PAGE | SAME_ORIGIN_FETCH | ORIGIN, True, True),
    "our page is left by a link": (HOST | PAGE | SAME_ORIGIN_NAVIGATION, True, False),
    "an old browser's page": (HOST | PAGE, True, True),
    "an old browser's page with its origin": (HOST | PAGE | ORIGIN, True, True),
    "an old browser's page without a referer": (HOST | ORIGIN, True, True),
    "a page of this origin that hides where it is": (HOST | SAME_ORIGIN_FETCH, False, False),
    "a page that hides where it is but not its origin": (HOST | SAME_ORIGIN_FETCH | ORIGIN, False, False),
    "an empty referer": (HOST | SAME_ORIGIN_FETCH | ORIGIN | {"referer": ""}, False, False),
    "a navigation that hides where it is from": (HOST | SAME_ORIGIN_NAVIGATION, True, False),
    "a workspace's page fetches": (HOST | WORKSPACE | SAME_ORIGIN_FETCH, False, False),
    "a workspace's page fetches with its origin": (
        HOST | WORKSPACE | SAME_ORIGIN_FETCH | ORIGIN,
        False,
        False,
    ),
    "a workspace's page in an old browser": (HOST | WORKSPACE, False, False),
    "a workspace's page is left by a link": (HOST | WORKSPACE | SAME_ORIGIN_NAVIGATION, False, False),
    "a workspace's page by a path in disguise": (
        HOST | SAME_ORIGIN_FETCH | ORIGIN | {"referer": f"{PUBLIC}/%77/x/"},
        False,
        False,
    ),
    "a workspace's page by two slashes": (
        HOST | SAME_ORIGIN_FETCH | ORIGIN | {"referer": f"{PUBLIC}//w/x/"},
        False,
        False,
    ),
    "a page whose name only begins like a workspace's": (
        HOST | SAME_ORIGIN_FETCH | ORIGIN | {"referer": f"{PUBLIC}/welcome"},
        True,
        True,
    ),
    "another site fetches": (HOST | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, False, False),
    "another site links to us": (
        HOST | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
        False,
        False,
    ),
    "another site posts a form": (
        HOST
        | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "origin": "https://evil.example"},
        False,
        False,
    ),
    "a sister site": (HOST | {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, False, False),
    "a word that no browser knows yet": (HOST | {"sec-fetch-site": "new-site"}, False, False),
    "an empty word": (HOST | {"sec-fetch-site": ""}, False, False),
    "another origin": (HOST | {"origin": "https://evil.example"}, False, False),
    "another origin that lies about its site": (
        HOST | PAGE | SAME_ORIGIN_FETCH | {"origin": "https://evil.example"},
        False,
        False,
    ),
    "our name with another scheme": (HOST | {"origin": "http://codehub.example"}, False, False),
    "our name with another port": (HOST | {"origin": "https://codehub.example:8443"}, False, False),
    "a name that begins like ours": (HOST | {"origin": "https://codehub.example.evil.example"}, False, False),
    "a name that ends like ours": (HOST | {"origin": "https://evilcodehub.example"}, False, False),
    "our name in upper case, which no browser sends": (HOST | {"origin": PUBLIC.upper()}, False, False),
    "a user before our name": (HOST | {"origin": "https://codehub.example@evil.example"}, False, False),
    "Origin null of a sandboxed frame or a file": (HOST | {"origin": "null"}, False, False),
    "an empty origin": (HOST | {"origin": ""}, False, False),
    "no URL as origin": (HOST | {"origin": "http://["}, False, False),
    "no URL as referer": (HOST | ORIGIN | {"referer": "http://["}, False, False),
    "a page of another host asks the API directly": (
        DIRECT | {"origin": "http://127.0.0.1:8081"},
        False,
        False,
    ),
    "a page on another port of loopback": (DIRECT | {"origin": "http://127.0.0.1:3000"}, False, False),
    "a page on localhost asks 127.0.0.1": (DIRECT | {"origin": "http://localhost:8081"}, False, False),
    "a name that was rebound to loopback": (
        {"host": "evil.example:8081", "origin": "http://evil.example:8081"},
        False,
        False,
    ),
    "a workspace's page on loopback": (
        DIRECT | {"origin": "http://127.0.0.1:8081", "referer": "http://127.0.0.1:8081/w/x/"},
        False,
        False,
    ),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_cookie_authenticates_reads(method: str, name: str) -> None:
    headers, may_read, _ = TABLE[name]
    assert is_cookie_trusted(method, headers, OURS) is may_read


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT", "UNHEARD-OF"])
def test_a_cookie_authenticates_changes(method: str, name: str) -> None:
    headers, _, may_change = TABLE[name]
    assert is_cookie_trusted(method, headers, OURS) is may_change


def test_a_cookie_that_authenticates_changes_also_authenticates_reads() -> None:
    assert not [name for name, (_, may_read, may_change) in TABLE.items() if may_change and not may_read]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (SAME_ORIGIN_FETCH, True),
        (TYPED_IN, True),
        (PAGE, True),
        (ORIGIN | PAGE, True),
        ({}, False),
        ({"referer": ""}, False),
        ({"referer": "http://["}, False),
        ({"referer": "https://0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44.workspaces.example/"}, False),
        ({"referer": "https://codehub.example:9001/"}, False),
        ({"referer": "http://codehub.example/"}, False),
        ({"referer": "https://codehub.example.evil.example/"}, False),
        ({"sec-fetch-site": "same-site"}, False),
    ],
)
def test_a_read_without_a_csrf_token_must_be_a_page_of_ours(headers: Headers, expected: bool) -> None:
    assert is_own_page(headers, OURS) is expected


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://codehub.example", "https://codehub.example"),
        ("https://codehub.example/", "https://codehub.example"),
        ("https://codehub.example:8443/hub/", "https://codehub.example:8443"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ],
)
def test_an_origin_is_a_url_without_its_path(url: str, origin: str) -> None:
    assert origin_of(url) == origin
