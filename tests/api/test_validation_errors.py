"""Validation errors are plain sentences of ours; Pydantic's wording never reaches a person."""

import json
import re
from typing import Any, NamedTuple

import pytest
from pydantic_core._pydantic_core import list_all_errors

from api.security.access import API
from api.validation_errors import DEFAULT, MAX_FIELDS, PREDICATES, sentence_for
from tests.api.malformed_requests import WORKSPACES, MalformedHarness, harness

__all__ = ["harness"]

ADMIN_WORKSPACES = f"{API}/admin/workspaces"
# A number that only JSON text can express.
HUGE = "1e400"
ID = "0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44"
# The fixed parts of Pydantic's messages that have several words.
PYDANTIC_WORDING = {
    part.strip()
    for error in list_all_errors()
    for part in re.split(r"\{\w+\}", error["message_template_python"])
    if " " in part.strip()
}


class Case(NamedTuple):
    """A request with one wrong field, the type of Pydantic's error, and the sentence that it becomes."""

    type: str
    request: tuple[str, str, Any]
    field: str
    message: str


def create(field: str, value: object, type_: str, message: str) -> Case:
    return Case(type_, ("POST", WORKSPACES, {"name": "home", field: value}), f"body.{field}", message)


def listing(query: str, type_: str, message: str, path: str = WORKSPACES) -> Case:
    return Case(type_, ("GET", f"{path}?{query}", None), f"query.{query.split('=', maxsplit=1)[0]}", message)


CASES = [
    Case("missing", ("POST", WORKSPACES, {}), "body.name", "`name` is required."),
    Case("missing", ("POST", WORKSPACES, None), "body", "The body is required."),
    Case("model_attributes_type", ("POST", WORKSPACES, []), "body", "The body must be a JSON object."),
    create("nmae", "home", "extra_forbidden", "Unknown field `nmae`."),
    create("name", 5, "string_type", "`name` must be a string."),
    create("name", " ", "string_too_short", "`name` must not be empty."),
    create("name", "n" * 101, "string_too_long", "`name` must be at most 100 characters long."),
    create(
        "image_ref",
        "an image",
        "string_pattern_mismatch",
        "`image_ref` contains characters that are not allowed, or is too long.",
    ),
    create("standby_ttl_seconds", [], "int_type", "`standby_ttl_seconds` must be a whole number."),
    create("standby_ttl_seconds", "sixty", "int_parsing", "`standby_ttl_seconds` must be a whole number."),
    create("standby_ttl_seconds", 60.5, "int_from_float", "`standby_ttl_seconds` must be a whole number."),
    create("standby_ttl_seconds", HUGE, "finite_number", "`standby_ttl_seconds` must be a whole number."),
    create("standby_ttl_seconds", 59, "greater_than_equal", "`standby_ttl_seconds` must be at least 60."),
    create(
        "archive_ttl_seconds",
        315_360_001,
        "less_than_equal",
        "`archive_ttl_seconds` must be at most 315360000.",
    ),
    create(
        "desired_state",
        "DELETED",
        "enum",
        "`desired_state` must be `RUNNING`, `STANDBY`, `ARCHIVED` or `PENDING`.",
    ),
    create("memo", "\x00", "value_error", "`memo` must not contain control characters."),
    Case(
        "literal_error",
        ("POST", f"{API}/admin/users", {"username": "grace", "password": "correct horse", "role": "root"}),
        "body.role",
        "`role` must be `user` or `admin`.",
    ),
    Case(
        "bool_type",
        ("PATCH", f"{API}/admin/users/{ID}", {"disabled": []}),
        "body.disabled",
        "`disabled` must be true or false.",
    ),
    Case(
        "list_type",
        ("POST", f"{API}/admin/errors/recover", {"ids": "all"}),
        "body.ids",
        "`ids` must be a list.",
    ),
    Case(
        "too_long",
        ("POST", f"{API}/admin/errors/recover", {"ids": ["x"] * 501}),
        "body.ids",
        "`ids` must have at most 500 items.",
    ),
    Case(
        "string_type",
        ("POST", f"{API}/admin/errors/recover", {"ids": ["x", 5]}),
        "body.ids.1",
        "`ids[1]` must be a string.",
    ),
    Case(
        "uuid_type",
        ("POST", f"{WORKSPACES}/{{id}}/recover", {"choice": "restore_archive", "archive": 5}),
        "body.archive",
        "`archive` must be an id, as the API shows it.",
    ),
    Case(
        "uuid_parsing",
        ("POST", f"{WORKSPACES}/{{id}}/recover", {"choice": "restore_archive", "archive": "last"}),
        "body.archive",
        "`archive` must be an id, as the API shows it.",
    ),
    Case(
        "value_error",
        ("POST", f"{WORKSPACES}/{{id}}/recover", {"choice": "retry", "archive": ID}),
        "body",
        "The body must not contain `archive` unless `choice` is `restore_archive`.",
    ),
    listing("limit=0", "greater_than_equal", "Query parameter `limit` must be at least 1."),
    listing("limit=ten", "int_parsing", "Query parameter `limit` must be a whole number."),
    listing(
        f"limit={'9' * 5_000}",
        "int_parsing_size",
        "Query parameter `limit` must be a whole number with fewer digits.",
    ),
    listing("deleted=perhaps", "bool_parsing", "Query parameter `deleted` must be true or false."),
    listing(
        "owner=ada",
        "uuid_parsing",
        "Query parameter `owner` must be an id, as the API shows it.",
        ADMIN_WORKSPACES,
    ),
    Case(
        "value_error",
        ("DELETE", f"{API}/tokens/last", None),
        "path.token_id",
        "Path parameter `token_id` must be an id, as the API shows it.",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{each.type} {each.field}" for each in CASES])
async def test_each_kind_of_error_is_a_sentence_that_names_the_field(
    case: Case, harness: MalformedHarness
) -> None:
    method, path, body = case.request
    headers = {"content-type": "application/json"}
    content = "" if body is None else json.dumps(body).replace(f'"{HUGE}"', HUGE)
    path = path.format(id=harness.workspace_id)
    response = await harness.client.request(method, path, content=content, headers=headers)
    problem = response.json()["error"]
    assert (response.status_code, problem["code"]) == (400, "INVALID_REQUEST")
    assert problem["fields"] == [{"field": case.field, "message": case.message}]
    assert problem["message"] == f"Invalid request: {case.message}"
    assert pydantic_wording_in(response.text) == set()


def test_every_sentence_is_provoked_through_the_api() -> None:
    assert {case.type for case in CASES} == {*PREDICATES, "extra_forbidden"}


async def test_a_header_is_called_a_header(harness: MalformedHarness) -> None:
    response = await harness.client.post(
        WORKSPACES, json={"name": "home"}, headers={"Idempotency-Key": "k" * 201}
    )
    [problem] = response.json()["error"]["fields"]
    assert problem["message"] == "Header `Idempotency-Key` must be at most 200 characters long."


async def test_a_message_lists_the_first_problems_only(harness: MalformedHarness) -> None:
    form = {"name": "home", **{f"field{number}": 1 for number in range(100)}}
    problem = (await harness.client.post(WORKSPACES, json=form)).json()["error"]
    assert len(problem["fields"]) == MAX_FIELDS
    assert problem["message"].count("Unknown field") == 5


@pytest.mark.parametrize("type_", [error["type"] for error in list_all_errors()])
def test_no_type_of_error_shows_the_wording_of_pydantic(type_: str) -> None:
    [error] = [each for each in list_all_errors() if each["type"] == type_]
    context = error["example_context"] or {}
    raw = {"type": type_, "loc": ("body", "name"), "msg": error["message_template_python"], "ctx": context}
    assert pydantic_wording_in(sentence_for(raw)) == set()


def test_an_unknown_type_of_error_has_a_sentence_too() -> None:
    assert sentence_for({"type": "new", "loc": ("body", "name"), "msg": "Raw"}) == f"`name` {DEFAULT}."


def pydantic_wording_in(text: str) -> set[str]:
    return {wording for wording in PYDANTIC_WORDING if wording in text}
