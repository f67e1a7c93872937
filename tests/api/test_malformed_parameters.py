"""Malformed paths, queries and headers are refused in our error format, never with a 5xx."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.security.access import API
from tests.api.harness import ApiHarness
from tests.api.malformed_requests import WORKSPACES, MalformedHarness, assert_refused, harness

__all__ = ["harness"]


def _cursor(*parts: Any) -> str:  # noqa: ANN401
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


ID = "0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44"
NOON = "2026-07-01T12:00:00+00:00"
POSITIONS = [
    "x",
    "====",
    "é",
    "\0",
    "A" * 200,
    "A" * 201,
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    base64.urlsafe_b64encode(b"[" * 140).decode(),
    base64.urlsafe_b64encode(b"null").decode(),
    base64.urlsafe_b64encode(b'{"a": 1, "b": 2}').decode(),
    _cursor(),
    _cursor(NOON),
    _cursor(NOON, ID, ID),
    _cursor(NOON, 5),
    _cursor(NOON, None),
    _cursor(NOON, [ID]),
    _cursor(NOON, "none-of-ours"),
    _cursor(5, ID),
    _cursor(None, ID),
    _cursor("yesterday", ID),
    _cursor("2026-07-01T12:00:00", ID),
    _cursor("0001-01-01T00:00:00+14:00", ID),
    _cursor("9999-12-31T23:59:59-14:00", ID),
]


@pytest.mark.parametrize("path", [WORKSPACES, f"{API}/admin/workspaces"])
@pytest.mark.parametrize("cursor", POSITIONS, ids=range(len(POSITIONS)))
async def test_an_unknown_cursor_is_refused(cursor: str, path: str, harness: MalformedHarness) -> None:
    assert_refused(await harness.client.get(path, params={"cursor": cursor}), 400)


@pytest.mark.parametrize("extreme", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00"])
async def test_a_cursor_with_an_extreme_time_is_accepted(extreme: str, harness: MalformedHarness) -> None:
    response = await harness.client.get(WORKSPACES, params={"cursor": _cursor(extreme, ID)})
    assert response.status_code == 200


NUMBERS = ["x", "-1", "1.5", "٣", "²", " 1", "1e3", "9" * 19, "9" * 199, "\0", "0x10", "1_0", "+1"]


@pytest.mark.parametrize("path", ["operations", "events"])
@pytest.mark.parametrize("cursor", NUMBERS)
async def test_a_cursor_that_is_not_a_number_is_refused(
    cursor: str, path: str, harness: MalformedHarness
) -> None:
    assert_refused(await harness.client.get(f"{harness.workspace}/{path}", params={"cursor": cursor}), 400)


QUERIES = [
    (WORKSPACES, {"limit": "0"}),
    (WORKSPACES, {"limit": "201"}),
    (WORKSPACES, {"limit": "-1"}),
    (WORKSPACES, {"limit": "ten"}),
    (WORKSPACES, {"limit": "9" * 5_000}),
    (WORKSPACES, {"limit": ""}),
    (WORKSPACES, {"limit": "NaN"}),
    (WORKSPACES, {"phase": "running"}),
    (WORKSPACES, {"phase": "\0"}),
    (WORKSPACES, {"deleted": "perhaps"}),
    (WORKSPACES, {"q": "q" * 101}),
    (WORKSPACES, {"q": "q" * 50_000}),
    (f"{API}/admin/workspaces", {"owner": "ada"}),
    (f"{API}/admin/workspaces", {"owner": "\0"}),
    (f"{API}/admin/users", {"cursor": "u" * 201}),
    (f"{API}/admin/errors", {"limit": "0"}),
    (f"{WORKSPACES}/{{id}}/logs", {"tail": "-1"}),
    (f"{WORKSPACES}/{{id}}/logs", {"tail": "10001"}),
    (f"{WORKSPACES}/{{id}}/logs", {"follow": "forever"}),
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
async def test_malformed_queries_are_refused(
    query: tuple[str, dict[str, str]], harness: MalformedHarness
) -> None:
    path, params = query
    assert_refused(await harness.client.get(path.format(id=harness.workspace_id), params=params), 400)


@pytest.mark.parametrize(
    "search", ["\0", "%", "_", "\\", "'", '"; DROP TABLE users; --', "\ufffd", "\U0001d54f", "%00"]
)
@pytest.mark.parametrize("path", [WORKSPACES, f"{API}/admin/workspaces"])
async def test_search_text_has_no_special_characters(
    search: str, path: str, harness: MalformedHarness
) -> None:
    response = await harness.client.get(path, params={"q": search})
    assert response.status_code == 200
    assert response.json()["items"] == []


@pytest.mark.parametrize("wait", ["-1", "61", "99999", "9" * 5_000, "1.5", "soon", ""])
async def test_waiting_is_limited_to_a_minute(wait: str, harness: MalformedHarness) -> None:
    assert_refused(await harness.client.patch(harness.workspace, params={"wait": wait}, json={}), 400)


@pytest.mark.parametrize(
    "if_match", ["", "x", '"', '""', '"x"', "5, 6", 'W/"1"', "-1", "²", "9" * 99, "9" * 100, "1.0", "* *"]
)
async def test_an_if_match_that_is_not_an_etag_matches_nothing(
    if_match: str, harness: MalformedHarness
) -> None:
    headers = {b"If-Match": if_match.encode("latin-1")}
    response = await harness.client.patch(harness.workspace, json={"memo": "never"}, headers=headers)
    assert_refused(response, 412)
    assert (await harness.client.get(harness.workspace)).json()["memo"] != "never"


@pytest.mark.parametrize(
    "key", ["", " ", "two words", "k" * 201, "schlüssel", "tab\there", "\x7f", "k" * 50_000]
)
async def test_a_malformed_idempotency_key_is_refused(key: str, harness: MalformedHarness) -> None:
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    response = await harness.client.post(
        WORKSPACES, json={"name": "home", "desired_state": "STANDBY"}, headers=headers
    )
    assert_refused(response, 400)


def _spellings(id_: str) -> Iterator[str]:
    bare = id_.replace("-", "")
    yield id_.upper()
    yield "{" + id_ + "}"
    yield bare
    yield f"urn:uuid:{id_}"
    yield f"%20{id_}"
    yield f"{id_}%20"
    yield f"{id_}%00"
    yield f"{id_}%0a"
    yield id_[:-1]
    yield id_ + "0"
    yield bare[:16] + "-" + bare[16:]
    yield "0x" + bare[2:]
    yield "_".join((bare[:8], bare[9:]))
    yield "٣" * 32
    yield "%ff" * 16
    yield "-1"
    yield "null"
    yield "x" * 50_000


SPELLINGS = list(_spellings(ID))
PATHS = ["workspaces/{}", "workspaces/{}/logs", "workspaces/{}/events", "admin/users/{}"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("spelling", range(len(SPELLINGS)))
async def test_an_id_has_one_spelling(path: str, spelling: int, harness: MalformedHarness) -> None:
    known = harness.workspace_id if path.startswith("workspaces") else str(harness.person.user_id)
    id_ = list(_spellings(known))[spelling]
    assert_refused(await harness.client.get(f"{API}/{path.format(id_)}"), 400, 404)


@pytest.mark.parametrize("path", ["sessions/{}", "tokens/{}"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids=range(len(SPELLINGS)))
async def test_the_id_of_a_credential_has_one_spelling(
    path: str, spelling: str, harness: MalformedHarness
) -> None:
    assert_refused(await harness.client.delete(f"{API}/{path.format(spelling)}"), 400, 404)


HEADERS = [
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer codehub_pat_"},
    {"Authorization": "Bearer codehub_pat_\xff\xfe"},
    {"Authorization": "Bearer codehub_pat_" + "x" * 60_000},
    {"Authorization": "Basic YWRtaW46YWRtaW4="},
    {"Authorization": "\xa0"},
    {"Cookie": "codehub_session"},
    {"Cookie": "codehub_session="},
    {"Cookie": "codehub_session=\xff"},
    {"Cookie": 'codehub_session="\\377\\000"'},
    {"Cookie": "codehub_session=" + "x" * 60_000},
    {"Cookie": "; " * 30_000},
    {"Cookie": "codehub_session=x", "Origin": "http://["},
    {"Cookie": "codehub_session=x", "Origin": "http://[::1"},
    {"Cookie": "codehub_session=x", "Referer": "http://["},
    {"Cookie": "codehub_session=x", "Referer": "http://]/w/"},
    {"Cookie": "codehub_session=x", "Origin": "http://a:b:c"},
    {"Cookie": "codehub_session=x", "Origin": "\xff"},
    {"Cookie": "codehub_session=x", "Host": "["},
    {"Cookie": "codehub_session=x", "Origin": "http://127.0.0.1:99999", "Host": "127.0.0.1:99999"},
]


@pytest.mark.parametrize("headers", HEADERS, ids=range(len(HEADERS)))
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_malformed_credentials_do_not_authenticate(
    method: str, headers: dict[str, str], shared_harness: ApiHarness
) -> None:
    raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    response = await shared_harness.stranger().request(method, WORKSPACES, headers=raw)
    assert_refused(response, 401)


@pytest.mark.parametrize("token", ["", "\xff", "x" * 60_000])
async def test_a_malformed_csrf_token_is_refused(token: str, harness: MalformedHarness) -> None:
    headers = {b"X-CSRF-Token": token.encode("latin-1")}
    assert_refused(await harness.person.client.post(f"{API}/logout", headers=headers), 403)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD", "BREW"])
async def test_an_unsupported_method_gets_a_list_of_supported_ones(
    method: str, harness: MalformedHarness
) -> None:
    response = await harness.client.request(method, WORKSPACES)
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == {"GET", "POST"}


async def test_an_unknown_path_is_refused(harness: MalformedHarness) -> None:
    for path in ("/api", f"{API}/", f"{API}/workspaces/", "/w/x/", "/%00", "/x" * 5_000):
        assert_refused(await harness.client.get(path), 404)
