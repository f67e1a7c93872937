"""Request bodies: JSON only, and never more of them than fits."""

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import Message

from api.errors import ApiError
from api.schemas.errors import Code

JSON = "application/json"


def require_json(request: Request) -> None:
    """A form of another site can send anything but this type."""
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and media_type != JSON:
        raise ApiError(415, Code.UNSUPPORTED_MEDIA_TYPE, f"Send the body as {JSON}.")


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

    return Request(request.scope, receive)


def _too_large(max_bytes: int) -> HTTPException:
    # Not an ApiError: FastAPI turns all others that come up while it reads into a 400.
    return HTTPException(413, f"Send at most {max_bytes} bytes.")
