"""What the head of a request says: path, kind, credentials, use of the cookie."""

import pytest

from codehub.domain.conditions import WorkspaceId
from proxy.request_kind import (
    Credentials,
    RequestKind,
    WorkspacePath,
    credentials_of,
    may_use_cookie,
    own_path,
    parse_path,
    request_kind_of,
)
from proxy.transport.request_head import RequestHead, RequestHeadReader

ID = "0b8f3c1e-9d2a-4c55-8f3e-2b1a7c9d0e4f"
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
WEBSOCKET = {"Connection": "Upgrade", "Upgrade": "websocket"}


def head(method: str = "GET", target: str = "/", **fields: str) -> RequestHead:
    lines = [f"{method} {target} HTTP/1.1", "Host: dev.example"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return RequestHeadReader().read("\r\n".join([*lines, "", ""]).encode("latin-1"))


@pytest.mark.parametrize(
    ("target", "rest", "query"),
    [
        (f"/w/{ID}", b"", b""),
        (f"/w/{ID}/", b"/", b""),
        (f"/w/{ID}?a=/b", b"", b"?a=/b"),
        (f"/w/{ID}/lab/tree?x=1?y", b"/lab/tree", b"?x=1?y"),
        (f"/w/{ID}/../{ID}/%2e%2e/", f"/../{ID}/%2e%2e/".encode(), b""),
    ],
)
def test_a_path_of_a_workspace_is_split(target: str, rest: bytes, query: bytes) -> None:
    assert parse_path(target.encode()) == WorkspacePath(WorkspaceId(ID), rest, query)


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/w/",
        "/w/notes/",
        f"/w/{ID.upper()}/",
        f"/w/{ID}x/",
        f"/w/{ID[:-1]}/",
        f"/w/{ID.replace('-', '')}/",
        f"//w/{ID}/",
        f"/W/{ID}/",
        f"/w//{ID}/",
        f"/w/{ID.replace('0', 'g')}/",
    ],
)
def test_other_paths_name_no_workspace(target: str) -> None:
    assert parse_path(target.encode()) is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (NAVIGATION, RequestKind.NAVIGATION),
        ({**NAVIGATION, "Sec-Fetch-Site": "cross-site"}, RequestKind.NAVIGATION),
        ({"Sec-Fetch-Mode": "navigate"}, RequestKind.NAVIGATION),
        ({**NAVIGATION, "Sec-Fetch-Dest": "iframe"}, RequestKind.BACKGROUND),
        ({**NAVIGATION, "Sec-Purpose": "prefetch"}, RequestKind.BACKGROUND),
        (
            {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Accept": "text/html"},
            RequestKind.BACKGROUND,
        ),
        ({"Accept": "text/html,application/xhtml+xml"}, RequestKind.NAVIGATION),
        ({"Accept": "*/*"}, RequestKind.BACKGROUND),
        ({}, RequestKind.BACKGROUND),
        ({"X-CodeHub-Wake": "true"}, RequestKind.WAKING),
        ({**WEBSOCKET, "Accept": "text/html"}, RequestKind.BACKGROUND),
        ({**WEBSOCKET, "X-CodeHub-Wake": "true"}, RequestKind.WAKING),
    ],
)
def test_a_get_is_classified(fields: dict[str, str], expected: RequestKind) -> None:
    assert request_kind_of(head(**fields)) is expected


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE"])
def test_only_a_get_is_a_navigation(method: str) -> None:
    assert request_kind_of(head(method, **NAVIGATION)) is RequestKind.BACKGROUND


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Credentials(None, None)),
        ({"Cookie": "a=b; codehub_session=s3cret; c=d"}, Credentials(None, "s3cret")),
        ({"Cookie": "codehub_session="}, Credentials(None, None)),
        ({"Cookie": "xcodehub_session=1"}, Credentials(None, None)),
        ({"Authorization": "Bearer codehub_pat_x"}, Credentials("codehub_pat_x", None)),
        ({"Authorization": "bearer  codehub_pat_x"}, Credentials("codehub_pat_x", None)),
        (
            {"Authorization": "Bearer codehub_pat_x", "Cookie": "codehub_session=s"},
            Credentials("codehub_pat_x", None),
        ),
        # Not a token of CodeHub: it belongs to a program in the workspace.
        ({"Authorization": "Bearer eyJ", "Cookie": "codehub_session=s"}, Credentials(None, "s")),
        ({"Authorization": "Basic Y29kZWh1Yl9wYXRfeA=="}, Credentials(None, None)),
    ],
)
def test_credentials_are_read(fields: dict[str, str], expected: Credentials) -> None:
    assert credentials_of(head(**fields).block, b"codehub_session") == expected


def test_the_cookie_of_a_workspace_is_no_session() -> None:
    block = head(Cookie="codehub_session=s; codehub_workspace=w").block
    assert credentials_of(block, b"codehub_workspace", of_workspace=True) == Credentials(None, None, "w")


def test_on_a_workspaces_own_origin_the_whole_path_is_the_ides() -> None:
    assert own_path(WorkspaceId(ID), b"/w/x?a=b") == WorkspacePath(WorkspaceId(ID), b"/w/x", b"?a=b")


SAME = {"Sec-Fetch-Site": "same-origin"}
SAME_ORIGIN, CROSS_ORIGIN = {"Origin": "https://dev.example"}, {"Origin": "https://evil.example"}


@pytest.mark.parametrize(
    ("request_head", "expected"),
    [
        (head(), True),
        (head(**SAME), True),
        (head(**NAVIGATION), True),
        (head(**{**NAVIGATION, "Sec-Fetch-Site": "cross-site"}), True),
        (head(**{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}), False),
        (head(**{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}), False),
        (head("POST", **SAME, **SAME_ORIGIN), True),
        (head("POST", **SAME_ORIGIN), True),
        (head("POST"), True),
        (head("POST", **CROSS_ORIGIN), False),
        (head("POST", Origin="null"), False),
        (head(**CROSS_ORIGIN), False),
        (head(**SAME, **SAME_ORIGIN), True),
        (head("POST", **{**NAVIGATION, "Sec-Fetch-Site": "cross-site"}, **CROSS_ORIGIN), False),
        (head("DELETE", **{"Sec-Fetch-Site": "same-site"}, **SAME_ORIGIN), False),
        (head(**WEBSOCKET, **SAME_ORIGIN), True),
        (head(**WEBSOCKET, **CROSS_ORIGIN), False),
        (head(**WEBSOCKET), False),
        (head(**WEBSOCKET, Origin="null"), False),
        (head(**WEBSOCKET, Origin="http://dev.example"), False),
        (head(**WEBSOCKET, Origin="https://dev.example.evil.example"), False),
    ],
)
def test_the_cookie_counts_only_for_requests_of_the_same_site(
    request_head: RequestHead, expected: bool
) -> None:
    assert may_use_cookie(request_head, lambda _, origin: origin == b"https://dev.example") is expected


OWN_PAGE, OTHER_PAGE = {"Referer": "https://dev.example/a/b"}, {"Referer": "https://evil.example/"}


@pytest.mark.parametrize(
    ("request_head", "expected"),
    [
        # What another page of the same site loads as a script, a style or an image.
        (head(), False),
        (head("HEAD"), False),
        (head(**OTHER_PAGE), False),
        (head(Referer="https://dev.example.evil.example/"), False),
        (head(Referer="https://evil.example/https://dev.example/"), False),
        (head(Referer="https:"), False),
        (head(**OWN_PAGE), True),
        (head(Referer="https://dev.example"), True),
        (head(**SAME_ORIGIN), True),
        (head(**SAME), True),
        (head(Accept="text/html"), True),
        (head("POST", **SAME_ORIGIN), True),
        (head("POST", **CROSS_ORIGIN, **OWN_PAGE), False),
        (head(**CROSS_ORIGIN, **OWN_PAGE), False),
        (head(**WEBSOCKET, **OWN_PAGE), False),
    ],
)
def test_where_browsers_name_no_site_reads_need_a_referer(request_head: RequestHead, expected: bool) -> None:
    own = b"https://dev.example"
    assert may_use_cookie(request_head, lambda _, origin: origin == own, names_site=False) is expected
