"""An error in the words of S3, told so that the client really gets to read it."""

import asyncio
from contextlib import suppress
from http import HTTPStatus

CODES = {500: "InternalError", 503: "SlowDown"}
LINGER_SECONDS = 2.0


async def answer_with_error(
    status: int, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer a request of which something has been read; whoever calls closes the connection."""
    writer.write(_head(status) if request.startswith(b"HEAD ") else _head(status) + _body(status))
    await writer.drain()
    writer.write_eof()
    # Closed with bytes unread, the connection would be reset and the answer lost on the way.
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(65_536):
                pass


def _head(status: int) -> bytes:
    return (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/xml\r\n"
        f"Content-Length: {len(_body(status))}\r\nConnection: close\r\n\r\n"
    ).encode()


def _body(status: int) -> bytes:
    code = CODES[status]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
        "<Message>The game day says so.</Message></Error>"
    ).encode()
