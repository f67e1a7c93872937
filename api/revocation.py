"""Ends streams whose session or token is no longer valid, whoever revoked it: here, elsewhere, or time."""

import asyncio
import logging
from typing import NoReturn

from api.context import Context
from api.dependencies import SILENCE
from codehub.db.validity import find_valid

log = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0


async def end_revoked_streams(context: Context, period_seconds: float = PERIOD_SECONDS) -> NoReturn:
    """One query for all streams of this process, now and then."""
    while True:
        await asyncio.sleep(period_seconds)
        try:
            await end_revoked(context)
        except SILENCE as error:
            # Without the database nobody gets news either.
            log.warning("cannot tell which sessions are still valid: %s", error)


async def end_revoked(context: Context) -> None:
    held = context.hub.credentials
    if not held:
        return
    async with context.database.transaction() as session:
        valid = await find_valid(session, held, context.now())
    for credential_id in held - valid:
        context.hub.end_credential(credential_id)
