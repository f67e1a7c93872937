"""Each request has an id that answers, errors and log lines share."""

import re
import secrets

from fastapi import Request
from starlette.datastructures import Headers

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{8,64}")


def choose_request_id(headers: Headers) -> str:
    """The one that the front door gave it, if it looks like one."""
    sent = headers.get(HEADER, "")
    return sent if _ACCEPTED.fullmatch(sent) else secrets.token_hex(8)


def request_id_of(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)
