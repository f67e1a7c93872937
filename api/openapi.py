"""The OpenAPI document: what each route answers, errors included, is filled in from what guards it."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from api.context import Context
from api.examples import EXAMPLES
from api.schemas.errors import Code, ErrorBody, error_document
from api.security.access import ACCESS, Access
from api.security.csrf import HEADER as CSRF_HEADER
from api.version import VERSION

DESCRIPTION = """
CodeHub's public contract. Sign in with `POST /api/v1/login` (a cookie, and an `X-CSRF-Token` for changes) or
send a personal token as `Authorization: Bearer codehub_pat_...`. Every error has the same shape:
`{"error": {"code", "message", "request_id", ...}}`.
"""
TAGS = [
    {"name": "identity", "description": "Signing in and out, sessions, password."},
    {"name": "tokens", "description": "Personal tokens for programs."},
    {"name": "workspaces", "description": "Create, start, stop, archive, recover, delete."},
    {"name": "history", "description": "Operations, steps, progress, use, audit trail, archives, logs."},
    {"name": "events", "description": "Live updates."},
    {"name": "administration", "description": "For administrators."},
    {"name": "operations", "description": "Health and metrics."},
]

Answer = tuple[str, Code, str]
ERRORS: dict[int, Answer] = {
    400: (
        "The request is not valid.",
        Code.INVALID_REQUEST,
        "The request is not valid: body.name: Field required",
    ),
    401: (
        "Nobody is signed in.",
        Code.UNAUTHORIZED,
        "Sign in, or send a personal token that is still valid.",
    ),
    403: ("Not yours to do.", Code.FORBIDDEN, "This workspace belongs to somebody else."),
    404: ("There is none.", Code.WORKSPACE_NOT_FOUND, "There is no such workspace."),
    409: (
        "It does not go with the present state.",
        Code.OPERATION_IN_PROGRESS,
        "STARTING is under way; ask again when it has ended.",
    ),
    412: (
        "It has changed meanwhile.",
        Code.PRECONDITION_FAILED,
        "The workspace has changed since you read it; read it again and repeat the request.",
    ),
    413: ("The body is too large.", Code.BODY_TOO_LARGE, "Send at most 1048576 bytes."),
    415: ("The body is no JSON.", Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json."),
    429: (
        "Too many, or too fast.",
        Code.TOO_MANY_REQUESTS,
        "You are sending requests faster than allowed; slow down.",
    ),
    500: (
        "A mistake of ours.",
        Code.INTERNAL_ERROR,
        "CodeHub made a mistake. Tell an administrator the request id.",
    ),
    503: (
        "A dependency is down; it heals by itself.",
        Code.DEPENDENCY_UNAVAILABLE,
        "A service that CodeHub needs does not answer; it is tried again by itself. Repeat the request soon.",
    ),
}
HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
CHANGES = frozenset({"POST", "PATCH", "DELETE"})


def security_schemes(cookie_name: str) -> dict[str, Any]:
    return {
        "token": {"type": "http", "scheme": "bearer", "description": "A personal token."},
        "session": {"type": "apiKey", "in": "cookie", "name": cookie_name, "description": "Set by login."},
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": CSRF_HEADER,
            "description": "With a cookie's changes.",
        },
    }


def build_openapi(app: FastAPI, routes: Sequence[BaseRoute], context: Context) -> dict[str, Any]:
    """Built once; nothing in it depends on a request."""
    if app.openapi_schema is None:
        document = get_openapi(
            title="CodeHub", version=VERSION, description=DESCRIPTION, tags=TAGS, routes=routes
        )
        document["components"]["securitySchemes"] = security_schemes(context.options.cookie_name)
        schema = ErrorBody.model_json_schema(ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] |= schema.pop("$defs") | {"ErrorBody": schema}
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        # Not in the models: on its way through FastAPI an example loses every field that is null.
        for name, example in EXAMPLES.items():
            document["components"]["schemas"][name]["example"] = example
        for route in routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                _complete(document["paths"][route.path_format], route)
        app.openapi_schema = document
    return app.openapi_schema


def _complete(path: dict[str, Any], route: APIRoute) -> None:
    method = next(iter(route.methods or ()))
    operation = path[method.lower()]
    access = ACCESS[method, route.path_format]
    responses = operation["responses"]
    # FastAPI's own; ours is 400.
    responses.pop("422", None)
    for status in _statuses(method, access, route):
        responses.setdefault(str(status), _error_response(status))
    operation["security"] = _security(method, access)
    # Clients that are generated from the document name their methods after it.
    operation["operationId"] = route.name


def _statuses(method: str, access: Access, route: APIRoute) -> list[int]:
    if route.path_format in HEALTH:
        return [413, 415, 500]
    found = {400, 413, 415, 429, 500, 503}
    if access is not Access.PUBLIC or route.path_format.endswith("/login"):
        found |= {401, 403}
    if "{" in route.path_format:
        found.add(404)
    if method in CHANGES and access is not Access.PUBLIC:
        found.add(409)
    if method == "PATCH" and access is Access.OWNER:
        found.add(412)
    return sorted(found)


def _error_response(status: int) -> dict[str, Any]:
    description, code, message = ERRORS[status]
    example = error_document(code, message, request_id="9f2c41d07b1e88aa")
    content = {"schema": {"$ref": "#/components/schemas/ErrorBody"}, "example": example}
    return {"description": description, "content": {"application/json": content}}


def _security(method: str, access: Access) -> list[dict[str, list[str]]]:
    if access is Access.PUBLIC:
        return []
    cookie: dict[str, list[str]] = {"session": [], "csrf": []} if method in CHANGES else {"session": []}
    return [{"token": []}, cookie]
