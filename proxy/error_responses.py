"""Answers for programs: an error as JSON, with a code and a sentence that says what to do."""

import json

from proxy.transport.routing import Response

JSON_HEADERS = (
    ("Content-Type", "application/json"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)


def error_response(
    status: int, code: str, message: str, *, retry_after: int | None = None, **more: object
) -> Response:
    headers = list(JSON_HEADERS)
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    if status == 401:  # noqa: PLR2004
        headers.append(("WWW-Authenticate", "Bearer"))
    error = {"code": code, "message": message, **more}
    return Response(status, tuple(headers), json.dumps({"error": error}, default=str).encode())


def redirect(status: int, location: str) -> Response:
    return Response(status, (("Location", location), ("Cache-Control", "no-store")))
