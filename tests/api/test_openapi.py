"""The OpenAPI document is valid and complete, and every example matches its schema."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta, validator_for
from schemathesis.specs.openapi import definitions

from api.errors import TRANSLATIONS
from api.schemas.errors import Code
from api.security.access import ACCESS, ANONYMOUS, API
from codehub.services import errors as refusals
from tests.api.harness import ApiHarness
from tests.api.module_fixtures import PAGE_ROUTES

Document = dict[str, Any]
UNDOCUMENTED = {("GET", f"{API}/openapi.json"), *PAGE_ROUTES}
NO_CONTENT = {"204", "303", "304"}
OPERATION_ID = re.compile(r"[a-z]+(_[a-z]+)*")
SENTENCE = re.compile(r"[A-Z`].*[.)]", re.DOTALL)


@pytest.fixture(scope="module")
async def document(shared_harness: ApiHarness) -> Document:
    answer = await shared_harness.stranger().get(f"{API}/openapi.json")
    assert answer.status_code == 200
    read: Document = answer.json()
    return read


def _operations(document: Document) -> Iterator[tuple[tuple[str, str], Document]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield (method.upper(), path), operation


def _resolve(document: Document, node: Document) -> Document:
    while "$ref" in node:
        assert node["$ref"].startswith("#/"), "a document that stands alone refers to itself only"
        target: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def _nodes(node: Any) -> Iterator[Document]:  # noqa: ANN401
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(child)


def _contents(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield every request and response body, with a name."""
    for (method, path), operation in _operations(document):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            yield f"{method} {path} body", media
        for status, response in operation["responses"].items():
            for media in response.get("content", {}).values():
                yield f"{method} {path} {status}", media


def _examples(document: Document, media: Document) -> list[Any]:
    """Return the example of a media type, or of the schema that it refers to."""
    schema = _resolve(document, media["schema"])
    # An optional body is an `anyOf` with null.
    alternatives = [schema, *(_resolve(document, each) for each in schema.get("anyOf", []))]
    found = [each["example"] for each in (media, *alternatives) if "example" in each]
    return found + [value for each in alternatives for value in each.get("examples", [])]


def test_the_document_is_openapi_3_1(document: Document) -> None:
    assert document["openapi"].startswith("3.1")
    problems = [error.message for error in validator_for(definitions.OPENAPI_31).iter_errors(document)]
    assert problems == []


def test_every_schema_is_a_json_schema(document: Document) -> None:
    for schema in document["components"]["schemas"].values():
        meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_every_reference_resolves_and_every_schema_is_used(document: Document) -> None:
    references = {node["$ref"] for node in _nodes(document) if isinstance(node.get("$ref"), str)}
    for reference in references:
        assert _resolve(document, {"$ref": reference})
    unused = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]} - references
    assert unused == set()


def test_every_route_is_documented(document: Document) -> None:
    assert {route for route, _ in _operations(document)} == set(ACCESS) - UNDOCUMENTED


def test_every_operation_has_a_summary_and_a_description(document: Document) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for route, operation in _operations(document):
        assert operation["summary"], route
        assert SENTENCE.fullmatch(operation["description"]), route
        assert len(operation["tags"]) == 1, route
        assert set(operation["tags"]) <= tags, route
    assert {tag for _, operation in _operations(document) for tag in operation["tags"]} == tags


def test_operation_ids_are_unique_and_readable(document: Document) -> None:
    ids = [operation["operationId"] for _, operation in _operations(document)]
    assert len(set(ids)) == len(ids)
    assert [each for each in ids if not OPERATION_ID.fullmatch(each) or len(each) > 40] == []


def test_every_parameter_has_a_description(document: Document) -> None:
    silent = [
        (route, parameter["name"])
        for route, operation in _operations(document)
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert silent == []


def test_every_operation_has_one_success_and_its_errors(document: Document) -> None:
    for route, operation in _operations(document):
        statuses = set(operation["responses"])
        # The callback of the identity provider redirects.
        assert len([status for status in statuses if status < "304"]) == 1, route
        assert "500" in statuses, route
        assert "422" not in statuses, route
        if ACCESS[route] not in ANONYMOUS:
            assert {"401", "403", "429", "503"} <= statuses, route
        if "{" in route[1]:
            assert "404" in statuses, route
        for response in operation["responses"].values():
            assert response["description"], route


def test_every_error_has_the_same_schema(document: Document) -> None:
    for route, operation in _operations(document):
        for status, response in operation["responses"].items():
            if status < "400" or (route == ("GET", "/readyz") and status == "503"):
                continue
            media = response["content"]["application/json"]
            assert media["schema"] == {"$ref": "#/components/schemas/ErrorBody"}, route
            assert Code(media["example"]["error"]["code"])


def test_every_request_and_response_has_an_example(document: Document) -> None:
    without = [name for name, media in _contents(document) if not _examples(document, media)]
    assert without == []
    for route, operation in _operations(document):
        for status, response in operation["responses"].items():
            assert ("content" in response) == (status not in NO_CONTENT), (route, status)


def test_every_example_matches_its_schema(document: Document) -> None:
    wrong = []
    for name, media in _contents(document):
        schema = {**media["schema"], "components": document["components"]}
        validator = Draft202012Validator(schema, validate_formats=True)
        for example in _examples(document, media):
            wrong += [
                f"{name}: {error.instance_path}: {error.message}" for error in validator.iter_errors(example)
            ]
    assert wrong == []


def test_the_example_of_a_response_has_all_fields(document: Document) -> None:
    missing = [
        (name, field)
        for name, media in _contents(document)
        for example in _examples(document, media)
        for field in _resolve(document, media["schema"]).get("properties", {})
        if not name.endswith("body") and field not in example
    ]
    assert missing == []


def test_security_requirements_follow_from_the_access_table(document: Document) -> None:
    schemes = set(document["components"]["securitySchemes"])
    for route, operation in _operations(document):
        if ACCESS[route] in ANONYMOUS:
            assert operation["security"] == [], route
            continue
        token, cookie = operation["security"]
        assert set(token) == {"token"}
        assert set(cookie) == ({"session"} if route[0] == "GET" else {"session", "csrf"}), route
        assert set(token) | set(cookie) <= schemes


def test_request_bodies_forbid_other_fields(document: Document) -> None:
    for route, operation in _operations(document):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            schema = _resolve(document, media["schema"])
            forms = [_resolve(document, each) for each in schema.get("anyOf", [schema])]
            objects = [form for form in forms if form.get("type") == "object"]
            assert objects, route
            assert all(form["additionalProperties"] is False for form in objects), route


def test_bodies_are_only_json_or_text(document: Document) -> None:
    sent = {
        media
        for _, operation in _operations(document)
        for media in operation.get("requestBody", {}).get("content", {})
    }
    assert sent == {"application/json"}


def _refusals(kind: type[Exception]) -> set[type[Exception]]:
    return {kind} | {found for each in kind.__subclasses__() for found in _refusals(each)}


def test_every_refusal_is_translated() -> None:
    assert set(TRANSLATIONS) == _refusals(refusals.RequestRefused) - {refusals.RequestRefused}
