"""Request bodies: unambiguous JSON of limited size."""

import hashlib
import json
import re
from typing import Any, NoReturn

from fastapi import Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import Message

from api.errors import ApiError
from api.schemas.errors import Code

JSON = "application/json"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def require_json(request: Request) -> None:
    """Refuse other media types: a form on another site cannot send JSON."""
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and media_type != JSON:
        raise ApiError(415, Code.UNSUPPORTED_MEDIA_TYPE, f"Send the body as {JSON}.")


class JsonRequest(Request):
    """A request that parses its body with `read_json`."""

    async def json(self) -> Any:  # noqa: ANN401
        return read_json(await self.body())


def limit_body(request: Request, max_bytes: int) -> Request:
    """Return the same request, whose body is refused beyond this size, with or without a Content-Length."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > max_bytes:
        raise _too_large(max_bytes)
    received = 0

    async def receive() -> Message:
        nonlocal received
        message = await request.receive()
        received += len(message.get("body", b""))
        if received > max_bytes:
            raise _too_large(max_bytes)
        return message

    return JsonRequest(request.scope, receive)


def hash_request(form: BaseModel) -> bytes:
    """Return a hash of what a request asks for; a retry after an upgrade must get the same one.

    So neither the order of fields nor a new field that the client does not send changes it.
    """
    sent = json.dumps(form.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
    return hashlib.sha256(sent.encode()).digest()


def read_json(body: bytes) -> Any:  # noqa: ANN401
    """Parse JSON strictly: UTF-8, no duplicate keys, no NaN, no lone surrogates (RFC 7493)."""
    try:
        text = body.decode()
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
        if _SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError as error:
        raise _unreadable("The JSON body is nested too deeply.") from error
    except UnicodeDecodeError as error:
        raise _unreadable("The body must be encoded in UTF-8.") from error
    except UnicodeEncodeError as error:
        raise _unreadable(r"The body contains a \u escape that is half of a surrogate pair.") from error
    except json.JSONDecodeError as error:
        raise _unreadable(f"The body is not valid JSON: the error is at character {error.pos}.") from error
    except ValueError as error:
        raise _unreadable("The body contains a number with too many digits.") from error
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Something in front of the API may have read the other one.
        raise _unreadable("The body contains a field twice. Send each field once.")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _unreadable(f"The body is not valid JSON: {name} is not a number.")


# Not ApiErrors: FastAPI turns other exceptions while it reads a body into a 400 without a reason.
def _too_large(max_bytes: int) -> HTTPException:
    return HTTPException(413, f"The body is too large. Send at most {max_bytes} bytes.")


def _unreadable(message: str) -> HTTPException:
    return HTTPException(400, message)
