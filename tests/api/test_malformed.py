"""Requests that no honest client sends: refused in our one shape, with a sentence, never with a 5xx."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from api.access import API
from api.schemas.errors import ErrorBody
from tests.api.bench import ApiBench, Person
from tests.api.process import ApiProcess
from tests.api.shared import mistakes_of, served, shared_bench, shared_environment

__all__ = ["served", "shared_bench", "shared_environment"]

WORKSPACES = f"{API}/workspaces"
DEEP = 100_000
TWO_MEGABYTES = 2 * 1024 * 1024
LARGEST_ANSWER = 20_000


@dataclass(frozen=True)
class Desk:
    """An administrator with a token, and a workspace of theirs."""

    person: Person
    client: httpx.AsyncClient
    token: str
    workspace_id: str

    @property
    def workspace(self) -> str:
        return f"{WORKSPACES}/{self.workspace_id}"


@pytest.fixture(scope="module")
async def desk(shared_bench: ApiBench) -> Desk:
    person = await shared_bench.person(admin=True)
    client, _ = await shared_bench.token_client(person)
    token = client.headers["authorization"].removeprefix("Bearer ")
    created = await person.create()
    return Desk(person, client, token, created["id"])


def assert_refused(answer: httpx.Response, *statuses: int) -> None:
    """A 4xx of ours that a person can read and that does not send everything back."""
    assert answer.status_code in (statuses or range(400, 500)), answer.text[:1_000]
    problem = ErrorBody.model_validate(answer.json()).error
    assert problem.request_id == answer.headers["x-request-id"]
    assert problem.message[0].isupper()
    assert len(problem.message.split()) > 3
    assert len(answer.content) < LARGEST_ANSWER, "it echoes what it was sent"


def _json(**fields: Any) -> bytes:  # noqa: ANN401
    return json.dumps({"name": "home", "desired_state": "STANDBY", **fields}).encode()


BODIES: dict[str, bytes] = {
    "empty": b"",
    "white space": b"  \r\n",
    "no JSON": b"name=home",
    "half of it": b'{"name": "home"',
    "two documents": b'{"name": "home"}{"name": "home"}',
    "a comment": b'{"name": "home"} // really',
    "single quotes": b"{'name': 'home'}",
    "a byte order mark": b"\xef\xbb\xbf" + _json(),
    "UTF-16": _json().decode().encode("utf-16"),
    "UTF-32": _json().decode().encode("utf-32"),
    "arrays in arrays": b"[" * DEEP,
    "arrays in arrays that end": b"[" * DEEP + b"]" * DEEP,
    "objects in objects": b'{"name":' * DEEP + b"1" + b"}" * DEEP,
    "a deep value of a field": b'{"name":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a value as deep as the parser goes": b'{"name":' + b"[" * 900 + b"]" * 900 + b"}",
    "a deep unknown field": b'{"name": "home", "more":' + b"[" * 900 + b"]" * 900 + b"}",
    "null": b"null",
    "an array": b"[]",
    "a string": b'"home"',
    "a number": b"5",
    "nothing in it": b"{}",
    "NaN": b'{"name": "home", "standby_ttl_seconds": NaN}',
    "Infinity": b'{"name": "home", "standby_ttl_seconds": Infinity}',
    "minus Infinity": b'{"name": "home", "standby_ttl_seconds": -Infinity}',
    "NaN as a name": b'{"name": NaN}',
    "a huge integer": b'{"name": "home", "standby_ttl_seconds": ' + b"9" * 4_000 + b"}",
    "an integer too long to read": b'{"name": "home", "standby_ttl_seconds": ' + b"9" * 100_000 + b"}",
    "a huge float": b'{"name": "home", "standby_ttl_seconds": 1e400}',
    "an integer of 64 bits and one": _json(standby_ttl_seconds=2**64),
    "a fraction": _json(standby_ttl_seconds=60.5),
    "a negative number": _json(standby_ttl_seconds=-60),
    "the same key twice": b'{"name": "home", "name": "other"}',
    "the same unknown key twice": b'{"name": "home", "a": 1, "a": 2}',
    "the same key twice in a value": b'{"name": {"a": 1, "a": 2}}',
    "invalid UTF-8": b'{"name": "\xff\xfe"}',
    "half a character": b'{"name": "\xe2\x82"}',
    "a surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "a lone surrogate": b'{"name": "\\ud800"}',
    "a lone surrogate in a memo": b'{"name": "home", "memo": "\\udfff text"}',
    "a lone surrogate in an enumeration": b'{"name": "home", "desired_state": "\\ud800"}',
    "a lone surrogate in a pattern": b'{"name": "home", "image_ref": "\\ud800"}',
    "a lone surrogate as a key": b'{"name": "home", "\\ud800": 1}',
    "NUL in a name": _json(name="ho\0me"),
    "NUL in a memo": _json(memo="\0"),
    "NUL as a key": _json(**{"\0": 1}),
    "a control character": _json(description="\x1b[31mred"),
    "a name of spaces": _json(name=" \t "),
    "a name that is too long": _json(name="n" * 101),
    "a memo that is too long": _json(memo="m" * 65_537),
    "an image with spaces": _json(image_ref="an image"),
    "an image with a new line": _json(image_ref="image\n"),
    "a wrong type": _json(name=5),
    "true as a number": _json(standby_ttl_seconds=True),
    "a number as text": _json(standby_ttl_seconds="sixty"),
    "an object as a name": _json(name={"$ne": None}),
    "a state that cannot be asked for": _json(desired_state="DELETED"),
    "a state that does not exist": _json(desired_state="running"),
    "an unknown field": _json(owner_user_id="7d0c6a52-8a4e-4b0e-b7a4-0d7d5d0f6f10"),
    "a field of the answer": _json(phase="RUNNING"),
    "a prototype": _json(__proto__={"admin": True}),
    "a very long key": _json(**{"k" * 500_000: 1}),
    "many unknown fields": _json(**{f"field{number}": 1 for number in range(20_000)}),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_makes_no_sense_is_refused(name: str, desk: Desk) -> None:
    headers = {"content-type": "application/json"}
    assert_refused(await desk.client.post(WORKSPACES, content=BODIES[name], headers=headers), 400)


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_makes_no_sense_is_refused_by_patch(name: str, desk: Desk) -> None:
    if name == "nothing in it":
        return  # a change of nothing is one
    headers = {"content-type": "application/json"}
    before = (await desk.client.get(desk.workspace)).json()
    assert_refused(await desk.client.patch(desk.workspace, content=BODIES[name], headers=headers), 400)
    assert (await desk.client.get(desk.workspace)).json() == before


SURROGATE = "\ud800"
Fields = dict[str, Any]
FORMS: list[tuple[str, str, Fields]] = [
    ("POST", f"{API}/login", {"username": SURROGATE, "password": "correct horse"}),
    ("POST", f"{API}/login", {"username": "ada", "password": SURROGATE}),
    ("POST", f"{API}/login", {"username": "a\0da", "password": "correct horse"}),
    ("POST", f"{API}/login", {"username": "ada", "password": "p" * 1_025}),
    ("POST", f"{API}/login", {"username": "ada", "password": "nobody\0knows"}),
    ("POST", f"{API}/login", {"username": ["ada"], "password": {"$gt": ""}}),
    ("POST", f"{API}/password", {"current_password": "not mine", "new_password": SURROGATE * 9}),
    ("POST", f"{API}/password", {"current_password": "not mine", "new_password": "short"}),
    ("POST", f"{API}/tokens", {"name": SURROGATE}),
    ("POST", f"{API}/tokens", {"name": "two\nlines"}),
    ("POST", f"{API}/tokens", {"name": "\u200e\u2028"}),
    ("POST", f"{API}/tokens", {"name": "laptop", "expires_in_days": 0}),
    ("POST", f"{API}/tokens", {"name": "laptop", "expires_in_days": 10**30}),
    ("POST", f"{API}/admin/users", {"username": "gr ace", "password": "correct horse"}),
    ("POST", f"{API}/admin/users", {"username": "grace\n", "password": "correct horse"}),
    ("POST", f"{API}/admin/users", {"username": SURROGATE, "password": "correct horse"}),
    ("POST", f"{API}/admin/users", {"username": "gräce", "password": "correct horse"}),
    ("POST", f"{API}/admin/users", {"username": "grace", "password": "correct horse", "role": SURROGATE}),
    ("POST", f"{API}/admin/users", {"username": "grace", "password": "correct horse", "role": "root"}),
    ("POST", f"{API}/admin/errors/recover", {"ids": [SURROGATE]}),
    ("POST", f"{API}/admin/errors/recover", {"ids": ["x"] * 501}),
    ("POST", f"{API}/admin/errors/recover", {"choice": SURROGATE}),
]


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
async def test_a_form_that_makes_no_sense_is_refused(
    form: tuple[str, str, dict[str, Any]], desk: Desk
) -> None:
    method, path, fields = form
    headers = {"content-type": "application/json"}
    assert_refused(await desk.client.request(method, path, content=json.dumps(fields), headers=headers))


async def test_ids_that_are_none_are_told_one_by_one(desk: Desk) -> None:
    ids = ["", "\0", "none-of-ours", desk.workspace_id.upper(), "00000000-0000-4000-8000-000000000000"]
    answer = await desk.client.post(f"{API}/admin/errors/recover", json={"ids": ids})
    assert answer.status_code == 200
    assert [refused["id"] for refused in answer.json()["refused"]] == ids


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
async def test_a_cursor_of_nobody_is_refused(cursor: str, path: str, desk: Desk) -> None:
    assert_refused(await desk.client.get(path, params={"cursor": cursor}), 400)


@pytest.mark.parametrize("extreme", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00"])
async def test_a_cursor_at_the_end_of_time_is_an_empty_or_a_full_page(extreme: str, desk: Desk) -> None:
    answer = await desk.client.get(WORKSPACES, params={"cursor": _cursor(extreme, ID)})
    assert answer.status_code == 200


NUMBERS = ["x", "-1", "1.5", "٣", "²", " 1", "1e3", "9" * 19, "9" * 199, "\0", "0x10", "1_0", "+1"]


@pytest.mark.parametrize("path", ["operations", "events"])
@pytest.mark.parametrize("cursor", NUMBERS)
async def test_a_cursor_that_is_no_line_is_refused(cursor: str, path: str, desk: Desk) -> None:
    assert_refused(await desk.client.get(f"{desk.workspace}/{path}", params={"cursor": cursor}), 400)


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
async def test_a_query_that_makes_no_sense_is_refused(query: tuple[str, dict[str, str]], desk: Desk) -> None:
    path, params = query
    assert_refused(await desk.client.get(path.format(id=desk.workspace_id), params=params), 400)


@pytest.mark.parametrize(
    "search", ["\0", "%", "_", "\\", "'", '"; DROP TABLE users; --', "\ufffd", "\U0001d54f", "%00"]
)
@pytest.mark.parametrize("path", [WORKSPACES, f"{API}/admin/workspaces"])
async def test_what_is_searched_for_is_only_text(search: str, path: str, desk: Desk) -> None:
    answer = await desk.client.get(path, params={"q": search})
    assert answer.status_code == 200
    assert answer.json()["items"] == []


@pytest.mark.parametrize("wait", ["-1", "61", "99999", "9" * 5_000, "1.5", "soon", ""])
async def test_nobody_waits_for_longer_than_a_minute_or_less_than_nothing(wait: str, desk: Desk) -> None:
    assert_refused(await desk.client.patch(desk.workspace, params={"wait": wait}, json={}), 400)


@pytest.mark.parametrize(
    "if_match", ["", "x", '"', '""', '"x"', "5, 6", 'W/"1"', "-1", "²", "9" * 99, "9" * 100, "1.0", "* *"]
)
async def test_an_if_match_that_is_no_etag_matches_nothing(if_match: str, desk: Desk) -> None:
    headers = {b"If-Match": if_match.encode("latin-1")}
    answer = await desk.client.patch(desk.workspace, json={"memo": "never"}, headers=headers)
    assert_refused(answer, 412)
    assert (await desk.client.get(desk.workspace)).json()["memo"] != "never"


@pytest.mark.parametrize(
    "key", ["", " ", "two words", "k" * 201, "schlüssel", "tab\there", "\x7f", "k" * 50_000]
)
async def test_an_idempotency_key_that_is_none_is_refused(key: str, desk: Desk) -> None:
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    answer = await desk.client.post(
        WORKSPACES, json={"name": "home", "desired_state": "STANDBY"}, headers=headers
    )
    assert_refused(answer, 400)


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
async def test_an_id_has_one_spelling(path: str, spelling: int, desk: Desk) -> None:
    known = desk.workspace_id if path.startswith("workspaces") else str(desk.person.user_id)
    id_ = list(_spellings(known))[spelling]
    assert_refused(await desk.client.get(f"{API}/{path.format(id_)}"), 400, 404)


@pytest.mark.parametrize("path", ["sessions/{}", "tokens/{}"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids=range(len(SPELLINGS)))
async def test_an_id_of_a_credential_has_one_spelling(path: str, spelling: str, desk: Desk) -> None:
    assert_refused(await desk.client.delete(f"{API}/{path.format(spelling)}"), 400, 404)


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
async def test_headers_that_make_no_sense_identify_nobody(
    method: str, headers: dict[str, str], shared_bench: ApiBench
) -> None:
    raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    answer = await shared_bench.stranger().request(method, WORKSPACES, headers=raw)
    assert_refused(answer, 401)


@pytest.mark.parametrize("token", ["", "\xff", "x" * 60_000])
async def test_a_csrf_token_that_makes_no_sense_is_refused(token: str, desk: Desk) -> None:
    headers = {b"X-CSRF-Token": token.encode("latin-1")}
    assert_refused(await desk.person.client.post(f"{API}/logout", headers=headers), 403)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD", "BREW"])
async def test_a_method_that_a_path_does_not_know_is_told_those_that_it_does(method: str, desk: Desk) -> None:
    answer = await desk.client.request(method, WORKSPACES)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}


async def test_a_path_that_does_not_exist_is_refused(desk: Desk) -> None:
    for path in ("/", "/api", f"{API}/", f"{API}/workspaces/", "/w/x/", "//", "/%00", "/x" * 5_000):
        assert_refused(await desk.client.get(path), 404)


# What follows needs a real server: nobody but it sees the bytes.


@pytest.fixture
async def wire(served: ApiProcess, desk: Desk) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {desk.token}"}
    async with httpx.AsyncClient(base_url=served.base_url, headers=headers, timeout=60) as client:
        yield client


def _large_body() -> bytes:
    return _json(memo="m" * TWO_MEGABYTES)


async def test_a_large_body_is_refused_by_its_length(wire: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/json"}
    assert_refused(await wire.post(WORKSPACES, content=_large_body(), headers=headers), 413)


async def test_a_large_body_that_hides_its_length_is_refused(wire: httpx.AsyncClient) -> None:
    body = _large_body()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    headers = {"content-type": "application/json"}
    assert_refused(await wire.post(WORKSPACES, content=pieces(), headers=headers), 413)


async def test_a_body_in_pieces_is_read_like_any_other(wire: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in _json():
            yield bytes([byte])

    headers = {"content-type": "application/json"}
    answer = await wire.post(WORKSPACES, content=pieces(), headers=headers)
    assert answer.status_code == 201


async def test_nobody_sends_a_large_body_without_a_name(served: ApiProcess) -> None:
    async with httpx.AsyncClient(base_url=served.base_url, timeout=60) as client:
        headers = {"content-type": "application/json"}
        assert_refused(await client.post(WORKSPACES, content=_large_body(), headers=headers), 401)


Giant = tuple[str, dict[str, str]]
GIANTS: list[Giant] = [
    (WORKSPACES, {"X-Giant": "x" * 60_000}),
    (WORKSPACES, {"Cookie": "a=" + "x" * 60_000}),
    (f"{WORKSPACES}?q={'q' * 60_000}", {}),
    (f"{WORKSPACES}/{'x' * 60_000}", {}),
]


@pytest.mark.parametrize("giant", GIANTS, ids=["header", "cookie", "query", "path"])
async def test_a_giant_of_a_request_does_no_harm(
    giant: tuple[str, dict[str, str]], wire: httpx.AsyncClient
) -> None:
    path, headers = giant
    answer = await wire.get(path, headers=headers)
    assert answer.status_code < 500
    if answer.status_code >= 400:
        assert_refused(answer)


LOGIN = b"POST /api/v1/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BYTES = [
    b"\0\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"GET /api/v1/session HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
    b"GET /api/v1/session HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
    LOGIN + b"Content-Length: -1\r\n\r\n",
    LOGIN + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    LOGIN + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    LOGIN + b"Content-Length: 2\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    LOGIN + CHUNKED + b"\r\nzz\r\n",
]


@pytest.mark.parametrize("sent", BYTES, ids=range(len(BYTES)))
async def test_bytes_that_are_no_http_are_refused(sent: bytes, served: ApiProcess) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(sent)
    await writer.drain()
    writer.write_eof()
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    # The server may hang up on what is no HTTP at all.
    assert answer == b"" or answer.split(b" ")[1].startswith(b"4"), answer


async def test_the_server_has_made_no_mistake_in_all_of_that(served: ApiProcess) -> None:
    assert mistakes_of(served) == []
