"""The OpenAPI document: FastAPI's, with the errors and security of each route from the access table."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from api import VERSION
from api.context import Context
from api.errors import OUTAGE, UNEXPECTED
from api.examples import EXAMPLES
from api.schemas.errors import Code, ErrorBody, error_document
from api.security.access import ACCESS, ANONYMOUS, API, Access
from api.security.csrf import CSRF_HEADER
from api.security.guard import NOT_OWNER, NOT_SIGNED_IN, TOO_FAST
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation
from codehub.services.errors import OperationInProgress, VersionConflict, WorkspaceNotFound

DESCRIPTION = """
CodeHub's public contract. Sign in with `POST /api/v1/login` (a cookie, and an `X-CSRF-Token` for changes) or
send a personal token as `Authorization: Bearer codehub_pat_...`. Every error has the same shape:
`{"error": {"code", "message", "request_id", ...}}`.
"""
TAGS = [
    {"name": "identity", "description": "Signing in and out, sessions, password."},
    {"name": "tokens", "description": "Personal tokens for programs."},
    {"name": "workspaces", "description": "Create, start, stop, archive, recover, delete."},
    {"name": "history", "description": "Operations, steps, progress, activity, audit trail, archives, logs."},
    {"name": "network", "description": "What a workspace may connect to, and what it connected to."},
    {"name": "ports", "description": "Servers inside a workspace, and who they are shared with."},
    {"name": "events", "description": "Live updates."},
    {"name": "administration", "description": "For administrators."},
    {"name": "operations", "description": "Health and metrics."},
]

# By status: a description, and the code and message of an example.
ERRORS: dict[int, tuple[str, Code, str]] = {
    400: ("The request is invalid.", Code.INVALID_REQUEST, "Invalid request: `name` is required."),
    401: ("The request is not authenticated.", Code.UNAUTHORIZED, NOT_SIGNED_IN),
    403: ("The caller may not do this.", Code.FORBIDDEN, NOT_OWNER),
    404: ("It does not exist.", Code.WORKSPACE_NOT_FOUND, str(WorkspaceNotFound(WorkspaceId("")))),
    409: (
        "It conflicts with the current state.",
        Code.OPERATION_IN_PROGRESS,
        str(OperationInProgress(Operation.STARTING, None)),
    ),
    412: ("It has changed meanwhile.", Code.PRECONDITION_FAILED, str(VersionConflict(5))),
    413: (
        "The body is too large.",
        Code.BODY_TOO_LARGE,
        "The body is too large. Send at most 1048576 bytes.",
    ),
    415: ("The body is not JSON.", Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json."),
    429: ("There are too many requests.", Code.TOO_MANY_REQUESTS, TOO_FAST),
    500: ("CodeHub has failed.", Code.INTERNAL_ERROR, UNEXPECTED),
    503: ("A dependency is down for now.", Code.DEPENDENCY_UNAVAILABLE, OUTAGE),
}
HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
# Routes whose body contains ids of workspaces, which may not exist.
NAMES_WORKSPACES = frozenset({("POST", f"{API}/tokens")})
CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def security_schemes(cookie_name: str) -> dict[str, Any]:
    return {
        "token": {"type": "http", "scheme": "bearer", "description": "A personal token."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": cookie_name,
            "description": "Set by POST login.",
        },
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": CSRF_HEADER,
            "description": "Required for changes made with the session cookie.",
        },
    }


def build_openapi(app: FastAPI, routes: Sequence[BaseRoute], context: Context) -> dict[str, Any]:
    """Return the document; it is built once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title="CodeHub", version=VERSION, description=DESCRIPTION, tags=TAGS, routes=routes
        )
        document["components"]["securitySchemes"] = security_schemes(context.options.cookie_name)
        schema = ErrorBody.model_json_schema(ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] |= schema.pop("$defs") | {"ErrorBody": schema}
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        # Not in the models: FastAPI removes fields that are null from examples.
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
    # FastAPI's status for validation errors; ours is 400.
    responses.pop("422", None)
    for status in _statuses(method, access, route):
        responses.setdefault(str(status), _error_response(status))
    operation["security"] = _security(method, access)
    # Generated clients name their methods after it.
    operation["operationId"] = route.name


def _statuses(method: str, access: Access, route: APIRoute) -> list[int]:
    if route.path_format in HEALTH:
        return [413, 415, 500]
    found = {400, 413, 415, 429, 500, 503}
    if access not in ANONYMOUS or route.path_format.endswith("/login"):
        found |= {401, 403}
    if "/oidc/" in route.path_format:
        # 404 without an identity provider.
        found |= {403, 404}
    if "{" in route.path_format or (method, route.path_format) in NAMES_WORKSPACES:
        found.add(404)
    if method in CHANGES and access not in ANONYMOUS:
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
    if access in ANONYMOUS:
        return []
    cookie: dict[str, list[str]] = {"session": [], "csrf": []} if method in CHANGES else {"session": []}
    return [{"token": []}, cookie]
