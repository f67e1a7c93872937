"""Request bodies: JSON only, with one meaning, and never more of them than fits."""

import json
import re
from typing import Any, NoReturn

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import Message

from api.errors import ApiError
from api.schemas.errors import Code

JSON = "application/json"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def require_json(request: Request) -> None:
    """A form of another site can send anything but this type."""
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and media_type != JSON:
        raise ApiError(415, Code.UNSUPPORTED_MEDIA_TYPE, f"Send the body as {JSON}.")


class JsonRequest(Request):
    """A request whose body is read by our rules."""

    async def json(self) -> Any:  # noqa: ANN401
        return read_json(await self.body())


def limited(request: Request, max_bytes: int) -> Request:
    """The same request, of which nobody can read more than this, whether or not it says its length."""
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


def read_json(body: bytes) -> Any:  # noqa: ANN401
    """What the standard calls interoperable: UTF-8, no key twice, no NaN, no half of a character."""
    try:
        text = body.decode()
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
        if _SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError as error:
        raise _unreadable("Send JSON that is nested less deeply.") from error
    except UnicodeDecodeError as error:
        raise _unreadable("Send the body in UTF-8.") from error
    except UnicodeEncodeError as error:
        raise _unreadable(r"Send whole characters: a \u escape is half of a pair.") from error
    except json.JSONDecodeError as error:
        raise _unreadable(f"Send valid JSON: {error.msg} at character {error.pos}.") from error
    except ValueError as error:
        raise _unreadable("Send numbers of fewer digits.") from error
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Whoever looked at the request before us may have read the other one.
        raise _unreadable("Send each field once: the body names one twice.")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _unreadable(f"Send valid JSON: {name} is no number there.")


# Not ApiErrors: FastAPI turns all others that come up while it reads into a 400 without a reason.
def _too_large(max_bytes: int) -> HTTPException:
    return HTTPException(413, f"Send at most {max_bytes} bytes.")


def _unreadable(message: str) -> HTTPException:
    return HTTPException(400, message)
