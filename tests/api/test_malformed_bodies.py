"""Malformed bodies are refused in our error format with a sentence, never with a 5xx."""

import json
from typing import Any

import pytest

from api.security.access import API
from tests.api.malformed_requests import WORKSPACES, MalformedHarness, assert_refused, harness, new_workspace

__all__ = ["harness"]

DEEP = 100_000


BODIES: dict[str, bytes] = {
    "empty": b"",
    "white space": b"  \r\n",
    "no JSON": b"name=home",
    "half of it": b'{"name": "home"',
    "two documents": b'{"name": "home"}{"name": "home"}',
    "a comment": b'{"name": "home"} // really',
    "single quotes": b"{'name': 'home'}",
    "a byte order mark": b"\xef\xbb\xbf" + new_workspace(),
    "UTF-16": new_workspace().decode().encode("utf-16"),
    "UTF-32": new_workspace().decode().encode("utf-32"),
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
    "an integer of 64 bits and one": new_workspace(standby_ttl_seconds=2**64),
    "a fraction": new_workspace(standby_ttl_seconds=60.5),
    "a negative number": new_workspace(standby_ttl_seconds=-60),
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
    "NUL in a name": new_workspace(name="ho\0me"),
    "NUL in a memo": new_workspace(memo="\0"),
    "NUL as a key": new_workspace(**{"\0": 1}),
    "a control character": new_workspace(description="\x1b[31mred"),
    "a name of spaces": new_workspace(name=" \t "),
    "a name that is too long": new_workspace(name="n" * 101),
    "a memo that is too long": new_workspace(memo="m" * 65_537),
    "an image with spaces": new_workspace(image_ref="an image"),
    "an image with a new line": new_workspace(image_ref="image\n"),
    "a wrong type": new_workspace(name=5),
    "true as a number": new_workspace(standby_ttl_seconds=True),
    "a number as text": new_workspace(standby_ttl_seconds="sixty"),
    "an object as a name": new_workspace(name={"$ne": None}),
    "a state that cannot be requested": new_workspace(desired_state="DELETED"),
    "a state that does not exist": new_workspace(desired_state="running"),
    "an unknown field": new_workspace(owner_user_id="7d0c6a52-8a4e-4b0e-b7a4-0d7d5d0f6f10"),
    "a field of the answer": new_workspace(phase="RUNNING"),
    "a prototype": new_workspace(__proto__={"admin": True}),
    "a very long key": new_workspace(**{"k" * 500_000: 1}),
    "many unknown fields": new_workspace(**{f"field{number}": 1 for number in range(20_000)}),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_malformed_body_is_refused(name: str, harness: MalformedHarness) -> None:
    headers = {"content-type": "application/json"}
    assert_refused(await harness.client.post(WORKSPACES, content=BODIES[name], headers=headers), 400)


@pytest.mark.parametrize("name", BODIES)
async def test_a_malformed_body_is_refused_by_patch(name: str, harness: MalformedHarness) -> None:
    if name == "nothing in it":
        return  # an empty change is valid
    headers = {"content-type": "application/json"}
    before = (await harness.client.get(harness.workspace)).json()
    assert_refused(await harness.client.patch(harness.workspace, content=BODIES[name], headers=headers), 400)
    assert (await harness.client.get(harness.workspace)).json() == before


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
async def test_malformed_fields_are_refused(
    form: tuple[str, str, dict[str, Any]], harness: MalformedHarness
) -> None:
    method, path, fields = form
    headers = {"content-type": "application/json"}
    assert_refused(await harness.client.request(method, path, content=json.dumps(fields), headers=headers))


async def test_invalid_ids_are_refused_one_by_one(harness: MalformedHarness) -> None:
    ids = ["", "\0", "none-of-ours", harness.workspace_id.upper(), "00000000-0000-4000-8000-000000000000"]
    response = await harness.client.post(f"{API}/admin/errors/recover", json={"ids": ids})
    assert response.status_code == 200
    assert [refused["id"] for refused in response.json()["refused"]] == ids
