"""Fencing: an activity that outlived its operation must not change anything."""

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.contracts import OperationRequest
from codehub.db.session import Database
from codehub.db.snapshots import load_claim, load_snapshot
from codehub.domain.conditions import Snapshot
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason


async def require_current(database: Database, request: OperationRequest) -> None:
    """Raise Permanent unless this claim is still current. Call it right before a change."""
    async with database.transaction() as session:
        await _require(session, request)


async def load_current(session: AsyncSession, request: OperationRequest) -> Snapshot:
    """Lock and return the row. Raise Permanent unless this claim is still current."""
    row = await load_snapshot(session, request.workspace_id, for_update=True)
    await _require(session, request)
    if row is None:
        raise AssertionError("a claim without a row")
    return row


async def _require(session: AsyncSession, request: OperationRequest) -> None:
    claim = await load_claim(session, request.workspace_id)
    if claim is None or (claim.operation, claim.claimed_at) != (request.operation, request.claimed_at):
        raise Permanent(ErrorReason.ACTION_FAILED, f"This {request.operation} has already ended.")
