"""Stops the workspaces of disabled users."""

from uuid import UUID

from codehub.db.session import Database
from codehub.db.sweeps import WantedByDisabled, load_wanted_by_disabled
from codehub.domain.limits import disabled_target
from codehub.domain.states import DesiredState, Operation
from codehub.services.errors import RequestRefused
from codehub.services.requests import RequestContext
from codehub.services.workspaces import request_state

BATCH = 500


async def stop_workspaces_of_disabled(
    database: Database, *, context: RequestContext, owner_user_id: UUID | None = None
) -> list[WantedByDisabled]:
    """Request a stop for the workspaces of one or all disabled users; return those that the caller must wake.

    The next sweep repeats this for what was missed, because an operation ran or the process died.
    """
    async with database.transaction() as session:
        found = await load_wanted_by_disabled(session, BATCH, owner_user_id=owner_user_id)
    asked = []
    for each in found:
        target = disabled_target(each.phase, Operation.NONE, DesiredState.RUNNING)
        if target is None:
            continue
        try:
            await request_state(database, each.workspace_id, target, context=context)
        except RequestRefused:
            continue  # It is changing or gone by now.
        asked.append(each)
    return asked
