"""No worker looks at workspaces whose homes M1 still has: it would take every one of them for lost."""

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.m1_homes import find_waiting


class HomesNotImported(Exception):
    """There are homes of M1 to import first; the message is for a person."""


async def require_homes_imported(session: AsyncSession) -> None:
    """Raise HomesNotImported while a workspace's home is still in M1's directories."""
    if (waiting := await find_waiting(session)) is not None:
        raise HomesNotImported(
            f"The homes of {waiting.count} workspaces (one is {waiting.example!r}) are still in the "
            "directories of M1: import them with `codehub migrate --import-homes DIR`, where DIR is the "
            "directory that has M1's users/ in it, then start CodeHub again."
        )
