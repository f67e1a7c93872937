"""The pages and assets of the dashboard over HTTP."""

import re

import httpx
import pytest

from api.dashboard.bundle import ASSETS, DIGEST, FILES, render_shell
from api.routers.pages import SHELLS
from api.security.access import API
from tests.api.harness import ApiHarness

PAGES = ["/", "/login", "/workspaces/0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44", "/account", "/admin"]
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ADDRESSES = re.compile(r'(?:href|src)="([^"]+)"')
INLINE = re.compile(r"<style|style=|<script(?![^>]*src=)|\son\w+=|javascript:", re.IGNORECASE)
IMPORTED = re.compile(r'(?:from|import) "([^"]+)";')


@pytest.fixture
def stranger(shared_harness: ApiHarness) -> httpx.AsyncClient:
    return shared_harness.stranger(**BROWSER)


def directives(response: httpx.Response) -> dict[str, str]:
    parts = (each.strip().partition(" ") for each in response.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("path", PAGES)
async def test_pages_are_public_and_run_only_our_scripts(path: str, stranger: httpx.AsyncClient) -> None:
    response = await stranger.get(path)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = directives(response)
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    # Cookies do not authenticate requests of a page that hides its address.
    assert response.headers["referrer-policy"] == "same-origin"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert INLINE.findall(response.text) == []
    assert {each for each in ADDRESSES.findall(response.text) if not each.startswith(("/", "#"))} == set()


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_revalidated_and_sent_again_only_if_it_has_changed(
    path: str, stranger: httpx.AsyncClient
) -> None:
    response = await stranger.get(path)
    assert response.headers["cache-control"] == "no-cache"
    etag = response.headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}'):
        again = await stranger.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
    assert (await stranger.get(path, headers={"If-None-Match": '"other"'})).status_code == 200


async def test_the_assets_of_a_page_exist_and_are_cached_forever(stranger: httpx.AsyncClient) -> None:
    page = await stranger.get("/")
    found = [each for each in ADDRESSES.findall(page.text) if each.startswith(ASSETS)]
    assert len(found) > 5
    for address in found:
        response = await stranger.get(address)
        assert response.status_code == 200, address
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_an_asset_of_another_version_is_the_current_one_and_not_cached(
    stranger: httpx.AsyncClient,
) -> None:
    response = await stranger.get(f"{ASSETS}/0000000000000000/dom.js")
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    assert response.content == FILES["dom.js"].content


@pytest.mark.parametrize(
    "name", ["none.js", "", "../bundle.py", "..%2fbundle.py", "%2e%2e/shell.html", "dom.js/"]
)
async def test_no_other_file_is_served(name: str, stranger: httpx.AsyncClient) -> None:
    response = await stranger.get(f"{ASSETS}/{DIGEST}/{name}")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "NOT_FOUND"


def test_every_imported_script_exists() -> None:
    for name, asset in FILES.items():
        if not name.endswith(".js"):
            continue
        for path in IMPORTED.findall(asset.content.decode()):
            there = httpx.URL(f"http://x/{name}").join(path).path.removeprefix("/")
            assert there in FILES, f"{name} imports {path}"


def test_a_page_under_a_base_path_has_all_urls_under_it() -> None:
    shell = render_shell(SHELLS["/"], "/hub").decode()
    assert {each for each in ADDRESSES.findall(shell) if not each.startswith(("/hub/", "#"))} == set()


@pytest.mark.parametrize("path", ["/nothing", "/workspaces", "/workspaces/a/b", "/login/"])
async def test_an_unknown_path_is_a_page_for_people_and_json_for_programs(
    path: str, stranger: httpx.AsyncClient
) -> None:
    page = await stranger.get(path)
    assert page.status_code == 404
    assert "There is no such page" in page.text
    assert directives(page)["script-src"] == "'self'"
    document = await stranger.get(path, headers={"accept": "application/json"})
    assert (document.status_code, document.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_the_api_returns_json_to_browsers_too(stranger: httpx.AsyncClient) -> None:
    response = await stranger.get(f"{API}/nothing")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
