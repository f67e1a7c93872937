"""Ends event streams whose session or token has expired or been revoked."""

import asyncio
import logging
from collections.abc import Set
from typing import NoReturn

from api.context import Context
from api.health_checks import UNAVAILABLE
from codehub.db.credentials import find_valid

log = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0


async def end_suspect_streams(context: Context) -> NoReturn:
    """Check credentials at once when an event says that they may have been revoked."""
    while True:
        await end_revoked(context, await context.hub.suspects.take())


async def end_revoked_streams(context: Context) -> NoReturn:
    """Check all credentials periodically, with one query: they also expire, and events may be lost."""
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        await end_revoked(context, context.hub.credentials)


async def end_revoked(context: Context, credentials: Set[str]) -> None:
    """End the streams of credentials that are no longer valid; none if the database does not answer."""
    if not credentials:
        return
    try:
        async with context.database.transaction() as session:
            valid = await find_valid(session, credentials, context.now())
    except UNAVAILABLE as error:
        # Without the database, streams carry no updates either.
        log.warning("cannot check which sessions and tokens are still valid: %s", error)
        return
    for credential_id in credentials - valid:
        context.hub.end_credential(credential_id)
