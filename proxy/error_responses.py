"""Answers for programs: an error as JSON, with a code and a sentence that says what to do."""

import json

from proxy.transport.routing import Answer

JSON_HEADERS = (
    ("Content-Type", "application/json"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)


def refusal(
    status: int, code: str, message: str, *, retry_after: int | None = None, **more: object
) -> Answer:
    headers = list(JSON_HEADERS)
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    if status == 401:  # noqa: PLR2004
        headers.append(("WWW-Authenticate", "Bearer"))
    error = {"code": code, "message": message, **more}
    return Answer(status, tuple(headers), json.dumps({"error": error}, default=str).encode())


def redirect(status: int, location: str) -> Answer:
    return Answer(status, (("Location", location), ("Cache-Control", "no-store")))
