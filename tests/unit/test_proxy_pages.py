"""Every page: status, headers, size, accessibility, and no text that becomes markup."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from codehub.domain.states import ErrorReason, Operation, Phase
from codehub.ports import Progress
from proxy.pages import Visit
from proxy.transport.routing import Response
from tests.html_pages import read, visible_states
from tests.proxy_visits import (
    ALL_CHOICES,
    ARCHIVES,
    NOW,
    PAGES,
    PATH,
    TOKEN,
    VIEW,
    broken,
    deletion_failed,
    running,
    under_way,
    visit,
)

MAX_BYTES = 16 * 1024

EVERY_PAGE = {
    "starting": (202, PAGES.following(under_way(Operation.STARTING), None, then_open=False)),
    "restoring": (
        202,
        PAGES.following(under_way(Operation.RESTORING), Progress("download", 3, 9), then_open=True),
    ),
    "start needed": (502, PAGES.start_needed(visit(phase=Phase.PENDING, archived_at=None))),
    "restore needed": (502, PAGES.restore_needed(visit(phase=Phase.ARCHIVED))),
    "data lost": (502, PAGES.failed(broken(ErrorReason.DATA_LOST, "Gone."), ALL_CHOICES)),
    "archive damaged": (
        502,
        PAGES.failed(broken(ErrorReason.ARCHIVE_CORRUPTED, "Damaged."), ALL_CHOICES, ARCHIVES),
    ),
    "deletion failed": (502, PAGES.failed(deletion_failed(), ALL_CHOICES[:1])),
    "failed, nothing to choose": (502, PAGES.failed(broken(None), ())),
    "own limit": (502, PAGES.limit_reached(visit(), [running()], 1, everyone=False)),
    "everyone's limit": (502, PAGES.limit_reached(visit(), [], 100, everyone=True)),
    "disk limit": (502, PAGES.disk_limit_reached(visit(), "Delete files.")),
    "confirm stop": (200, PAGES.confirm_stop(visit(phase=Phase.RUNNING))),
    "not answering": (502, PAGES.not_answering(visit(phase=Phase.RUNNING))),
    "not found": (404, PAGES.not_found()),
    "forbidden": (403, PAGES.forbidden("grace")),
    "unavailable": (503, PAGES.unavailable()),
    "rejected form": (403, PAGES.rejected_form()),
    "port silent": (502, PAGES.port_not_responding(3000)),
    "port stopped": (503, PAGES.port_stopped("/p/x/3000/")),
    "port unavailable": (409, PAGES.port_unavailable("This image has no agent.")),
    "port not shared": (403, PAGES.port_not_shared("grace")),
}
RELOADING = {"starting", "restoring", "not answering", "unavailable", "port silent"}


@pytest.fixture(params=EVERY_PAGE)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def response(name: str) -> Response:
    return EVERY_PAGE[name][1]


def test_a_page_has_its_status(name: str, response: Response) -> None:
    assert response.status == EVERY_PAGE[name][0]


def test_a_page_is_not_stored_framed_or_sniffed(response: Response) -> None:
    headers = dict(response.headers)
    policy = headers.pop("Content-Security-Policy")
    headers.pop("Retry-After", None)
    assert headers == {
        "Content-Type": "text/html; charset=utf-8",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert all(re.fullmatch(r"[\x20-\x7e]+", value) for _, value in response.headers)


@pytest.mark.parametrize("tag", ["style", "script"])
def test_only_the_own_style_and_script_apply(response: Response, tag: str) -> None:
    inline = read(response).one(tag)
    digest = base64.b64encode(hashlib.sha256(inline.text.encode()).digest()).decode()
    assert inline.attributes == {}
    assert f"; {tag}-src 'sha256-{digest}'; " in dict(response.headers)["Content-Security-Policy"]


def test_a_page_uses_nothing_that_its_policy_forbids(response: Response) -> None:
    for element in read(response).all():
        assert not [each for each in element.attributes if each == "style" or each.startswith("on")]
        for link in ("href", "src", "action", "data-progress"):
            address = element.attributes.get(link, "/hub/")
            assert address.startswith(("/hub/", "data:image/", "../"))


def test_a_page_is_small(response: Response) -> None:
    assert len(response.body) < MAX_BYTES


def test_a_page_is_accessible(name: str, response: Response) -> None:
    page = read(response)
    headlines = [each for each in page.one("main").all("h1") if each.text]
    labels = {each.attributes.get("for") for each in page.all("label")}
    assert page.one("html").attributes == {"lang": "en"}
    assert page.one("title").text.endswith(" · CodeHub")
    assert len(headlines) == 1 or visible_states(page)
    assert all(each.attributes["id"] in labels for each in page.all("progress"))
    assert "/hub/" in {each.attributes["href"] for each in page.one("header").all("a")}


def test_without_script_only_a_waiting_page_reloads(name: str, response: Response) -> None:
    page = read(response)
    refreshing = [each for each in page.all("meta") if each.attributes.get("http-equiv") == "refresh"]
    without_script = [each for fallback in page.one("head").all("noscript") for each in fallback.all("meta")]
    assert refreshing == without_script
    assert bool(refreshing) == (name in RELOADING)


EVIL = "\"'></title></script><script>alert(1)</script>"


@pytest.mark.parametrize(
    "page",
    [
        PAGES.forbidden(EVIL),
        PAGES.following(Visit(replace(VIEW, name=EVIL), EVIL, "/hub/" + EVIL, NOW), None, then_open=False),
        PAGES.start_needed(Visit(replace(VIEW, name=EVIL), EVIL, EVIL, NOW)),
        PAGES.failed(Visit(broken(None, EVIL, name=EVIL).view, EVIL, EVIL, NOW), ALL_CHOICES),
        PAGES.limit_reached(visit(), [replace(running(), name=EVIL)], 1, everyone=False),
        PAGES.disk_limit_reached(visit(), EVIL),
    ],
)
def test_no_text_becomes_markup(page: Response) -> None:
    parsed = read(page)
    parsed.one("script")
    assert EVIL in parsed.one("main").text
    for hidden in parsed.all("input"):
        if hidden.attributes["name"] in {"token", "next"}:
            assert hidden.attributes["value"] in {EVIL, TOKEN, PATH}
