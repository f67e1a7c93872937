"""A log on its way to a reader: what fails before it begins is answered as an error, not as a torn answer."""

import asyncio
import logging
from collections.abc import AsyncIterator

from codehub.domain.failures import Failure

log = logging.getLogger(__name__)

# A log that is followed may stay silent for hours, and its reader wants to know that it listens.
PATIENCE_SECONDS = 2.0


async def begin(
    lines: AsyncIterator[bytes], patience_seconds: float = PATIENCE_SECONDS
) -> AsyncIterator[bytes]:
    """The same lines; raises what hinders the first of them, unless that takes too long."""
    first = asyncio.ensure_future(anext(lines, None))
    try:
        await asyncio.wait({first}, timeout=patience_seconds)
        if first.done():
            first.result()
    except BaseException:
        first.cancel()
        raise
    return _go_on(first, lines)


async def _go_on(first: asyncio.Future[bytes | None], lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        content = await first
        while content is not None:
            yield content
            content = await anext(lines, None)
    except Failure as failure:
        # The answer has begun, so all that is left is to end it.
        log.warning("a log ended early: %s", failure)
    finally:
        first.cancel()
