"""Ends streams whose session or token is no longer valid, whoever revoked it: here, elsewhere, or time."""

import asyncio
import logging
from collections.abc import Set
from typing import NoReturn

from api.context import Context
from api.health_checks import SILENCE
from codehub.db.credentials import find_valid

log = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0


async def end_doubted_streams(context: Context) -> NoReturn:
    """At once, where an event says that something was revoked."""
    while True:
        await end_revoked(context, await context.hub.doubts.take())


async def end_revoked_streams(context: Context) -> NoReturn:
    """One query for all streams of this process, now and then: time revokes too, and events may be lost."""
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        await end_revoked(context, context.hub.credentials)


async def end_revoked(context: Context, held: Set[str]) -> None:
    """End the streams of those among them that are not valid; none if that cannot be told."""
    if not held:
        return
    try:
        async with context.database.transaction() as session:
            valid = await find_valid(session, held, context.now())
    except SILENCE as error:
        # Without the database nobody gets news either.
        log.warning("cannot tell which sessions are still valid: %s", error)
        return
    for credential_id in held - valid:
        context.hub.end_credential(credential_id)
